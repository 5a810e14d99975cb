package directory

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/oklog/ulid/v2"
	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/telemetry"
)

// ErrConflict means that the aggregate has changed since it was loaded; nothing was stored.
var ErrConflict = jsapi.ErrConflict

// readTimeout bounds one read of a batch of events.
const readTimeout = 2 * time.Second

// declaration returns the configuration of the stream. The stream is the only record of who owns
// what. So it has no limit of size, count or age, is kept in files, and the broker rejects every
// deletion.
func declaration(replicas int) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        streams.DirectoryStream,
		Description: "who owns what: organizations, sites, hubs, keys",
		Subjects:    []string{streams.DirectoryFilter},
		Retention:   jetstream.LimitsPolicy,
		Storage:     jetstream.FileStorage,
		Replicas:    replicas,
		Discard:     jetstream.DiscardNew,
		DenyDelete:  true,
		DenyPurge:   true,
		// Reads need no consumer, and the events of one command are stored all or none.
		AllowDirect:        true,
		AllowAtomicPublish: true,
		// Follow receives new events from this subject.
		RePublish: &jetstream.RePublish{
			Source:      streams.DirectoryFilter,
			Destination: streams.DirectoryFeed,
		},
	}
}

// Log is the DIRECTORY stream.
type Log struct {
	nc *nats.Conn
	js jetstream.JetStream
	// api repeats requests that can succeed later. These include requests that a server rejects
	// with "no such stream" because it has just started.
	api     jsapi.API
	metrics *metrics
	tracer  telemetry.Tracer
	// admit is ServiceConfig.Admit.
	admit func(bytes int) error
}

// ErrGone means that the stream is gone from a broker that has journals, which are created after
// it. With an empty directory every hub would belong to whoever asks first.
var ErrGone = fmt.Errorf(
	"the directory is gone: the broker has no stream %s, but journals of its hubs",
	streams.DirectoryStream,
)

// Open opens the stream, or creates it with that number of replicas on the broker: 1, 3 or 5. 0
// keeps the number of an existing stream, and means 1 for a new one. Open returns
// streams.ErrIncompatible for a stream with other properties, and ErrGone.
func Open(ctx context.Context, conns *streams.Conns, replicas int) (*Log, error) {
	api := jsapi.New(conns.Cloud)
	_, err := api.Info(ctx, streams.DirectoryStream)
	if errors.Is(err, jsapi.ErrNoStream) {
		if _, err = api.Info(ctx, streams.JournalStream(0)); err == nil {
			return nil, ErrGone
		}
		if errors.Is(err, jsapi.ErrNoStream) {
			err = nil // a new installation
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open the directory: %w", err)
	}
	return Create(ctx, conns, replicas)
}

// Create is Open for a stream that may be gone.
func Create(ctx context.Context, conns *streams.Conns, replicas int) (*Log, error) {
	js, err := jetstream.New(conns.Cloud)
	if err != nil {
		return nil, fmt.Errorf("open the directory: %w", err)
	}
	if _, err := streams.Declare(ctx, js, declaration(replicas)); err != nil {
		return nil, fmt.Errorf("open the directory: %w", err)
	}
	return newLog(conns.Cloud, js), nil
}

func newLog(nc *nats.Conn, js jetstream.JetStream) *Log {
	api := jsapi.New(nc).WithRetry(jsapi.Retry{If: jsapi.IsTemporary})
	return &Log{nc: nc, js: js, api: api, metrics: newMetrics(nil)}
}

// Head returns the sequence of the log's last event, 0 when the log is empty. seen is a sequence
// that the caller has read, or 0. If the log seems to end before seen, Head asks the stream's
// leader: after a stale answer the caller would take the log for another one and drop all keys and
// read models.
func (l *Log) Head(ctx context.Context, seen uint64) (uint64, error) {
	info, err := l.api.ConfirmedInfo(ctx, streams.DirectoryStream, seen)
	if err != nil {
		return 0, fmt.Errorf("directory: read the head: %w", err)
	}
	return info.State.LastSeq, nil
}

// Append stores the events of one command, all or none, if the subject's last event has the
// sequence expected (0 for no event), and returns the sequence of the last event stored. Events
// without an ID get one.
//
// It returns ErrConflict when the subject's last event is another one, and jsapi.ErrOutcomeUnknown
// when the broker did not answer in time, so that the events may be stored.
func (l *Log) Append(
	ctx context.Context, subject string, expected uint64, events ...domain.Event,
) (seq uint64, err error) {
	began := time.Now()
	ctx, span := l.tracer.Start(ctx, "send "+streams.DirectoryStream, trace.SpanKindProducer)
	if span.On() && len(events) > 0 {
		span.Set(
			semconv.MessagingSystemKey.String("nats"), semconv.MessagingOperationTypeSend,
			semconv.MessagingOperationName("publish"),
			semconv.MessagingDestinationName(streams.DirectoryStream),
			semconv.MessagingBatchMessageCount(len(events)),
			attribute.String("hubcloud.event_type", events[0].Type),
			telemetry.KeyRequestID.String(events[0].RequestID),
		)
	}
	seq, err = l.append(ctx, subject, expected, events)
	span.End(err)
	switch {
	case err == nil:
		l.metrics.appended.Add(float64(len(events)))
		l.metrics.appendTime.Observe(time.Since(began).Seconds())
	case errors.Is(err, ErrConflict):
		l.metrics.conflicts.Inc()
	default:
		l.metrics.failures.Inc()
	}
	return seq, err
}

func (l *Log) append(
	ctx context.Context, subject string, expected uint64, events []domain.Event,
) (seq uint64, err error) {
	encoded, ids, err := encode(events)
	if err == nil {
		err = l.checkAdmission(encoded)
	}
	if err == nil {
		seq, err = l.publish(ctx, subject, expected, encoded, ids)
	}
	if err != nil {
		return 0, fmt.Errorf("directory: append to %s: %w", subject, err)
	}
	return seq, nil
}

// encode returns the events in their stored form, and their ids. It sets missing ids.
func encode(events []domain.Event) (encoded [][]byte, ids map[string]bool, err error) {
	encoded = make([][]byte, len(events))
	ids = make(map[string]bool, len(events))
	for i, e := range events {
		if e.ID == "" {
			id, err := ulid.New(ulid.Timestamp(e.At), rand.Reader)
			if err != nil {
				return nil, nil, err
			}
			e.ID = id.String()
		}
		ids[e.ID] = true
		if encoded[i], err = domain.EncodeEvent(e); err != nil {
			return nil, nil, err
		}
	}
	return encoded, ids, nil
}

// checkAdmission returns the error of ServiceConfig.Admit for the encoded events.
func (l *Log) checkAdmission(encoded [][]byte) error {
	if l.admit == nil {
		return nil
	}
	bytes := 0
	for _, text := range encoded {
		bytes += len(text)
	}
	return l.admit(bytes)
}

// publish appends encoded events. After a lost answer it sends them again on the same condition, so
// at most one of the two sends is stored. When the second one conflicts, publish looks for the ids:
// it may conflict with the events of the first.
func (l *Log) publish(
	ctx context.Context, subject string, expected uint64, encoded [][]byte, ids map[string]bool,
) (seq uint64, err error) {
	unsure := false // whether an earlier send may be stored
	err = jsapi.Retry{If: isRepeatable}.Do(ctx, func(ctx context.Context) (err error) {
		seq, err = jsapi.Append(ctx, l.nc, messages(subject, expected, encoded)...)
		switch {
		case errors.Is(err, jsapi.ErrOutcomeUnknown):
			unsure = true
		case errors.Is(err, ErrConflict) && unsure:
			found, last, lookErr := l.find(ctx, subject, expected, ids)
			if lookErr != nil || last == expected {
				return errors.Join(errBehind, lookErr)
			}
			unsure = false
			if found > 0 {
				seq, err = found, nil
			}
		}
		return err
	})
	if err != nil && unsure {
		err = fmt.Errorf("%w: %w", jsapi.ErrOutcomeUnknown, err)
	}
	return seq, err
}

// isRepeatable reports whether an append can be sent again after an error without storing the
// events twice.
func isRepeatable(err error) bool {
	return errors.Is(err, jsapi.ErrOutcomeUnknown) || errors.Is(err, jsapi.ErrNoStream) ||
		errors.Is(err, jsapi.ErrNoLeader) || errors.Is(err, errBehind)
}

// messages returns the messages of an append. Each try needs new ones, because sending adds
// headers.
func messages(subject string, expected uint64, encoded [][]byte) []*nats.Msg {
	msgs := make([]*nats.Msg, len(encoded))
	for i, data := range encoded {
		msgs[i] = &nats.Msg{Subject: subject, Data: data}
	}
	if len(msgs) > 0 {
		jsapi.ExpectLast(msgs[0], subject, expected)
	}
	return msgs
}

// find looks for the events with the ids among a subject's events after a sequence. It returns the
// sequence of the last one found, 0 for none, and the sequence of the subject's last event.
func (l *Log) find(
	ctx context.Context, subject string, after uint64, ids map[string]bool,
) (found, last uint64, err error) {
	last, err = l.Load(ctx, subject, after, func(seq uint64, e domain.Event) error {
		if ids[e.ID] {
			found = seq
		}
		return nil
	})
	return found, last, err
}
