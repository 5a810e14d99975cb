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

// ErrConflict says that an aggregate has moved on since it was loaded; nothing was stored.
var ErrConflict = jsapi.ErrConflict

// readTimeout bounds one request for a batch of events.
const readTimeout = 2 * time.Second

// declaration declares the stream. It is the one record of who owns what, so it has no limit of
// size, count or age, nothing can be removed from it by way of the broker, and it is kept in files.
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
		// Batches of events are read without a consumer, and several events of a decision are
		// stored as one.
		AllowDirect:        true,
		AllowAtomicPublish: true,
		// Followers hear of new events at once.
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
	// api repeats every request that can succeed later, also those of which a server that has just
	// started says that there is no such stream.
	api     jsapi.API
	metrics *metrics
	tracer  telemetry.Tracer
	// admit is ServiceConfig.Admit.
	admit func(bytes int) error
}

// Open opens the stream, and makes it if it is absent, with as many replicas on the broker (1, 3 or
// 5; 0 leaves them as they are, and makes one). One that is there with other properties is
// streams.ErrIncompatible.
func Open(ctx context.Context, conns *streams.Conns, replicas int) (*Log, error) {
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
	return &Log{nc: nc, js: js, api: api, metrics: newMetrics()}
}

// Head returns the sequence of the log's last event, 0 when it is empty. A log that ends before the
// sequence seen, of which the caller knows, is believed only once the leader has confirmed it: a
// stale answer would have the log taken for another one, and every key and read model forgotten.
func (l *Log) Head(ctx context.Context, seen uint64) (uint64, error) {
	info, err := l.api.ConfirmedInfo(ctx, streams.DirectoryStream, seen)
	if err != nil {
		return 0, fmt.Errorf("directory: look for the head: %w", err)
	}
	return info.State.LastSeq, nil
}

// Append stores the events of one decision, all or none, on condition that expected is the sequence
// of the subject's last event (0: it has none), and gives the sequence of the last one stored. An
// event without an ID gets one. It fails with ErrConflict when the condition does not hold, and
// with jsapi.ErrOutcomeUnknown when the broker did not answer for so long that the outcome stays unknown.
func (l *Log) Append(
	ctx context.Context, subject string, expected uint64, events ...domain.Event,
) (seq uint64, err error) {
	began := time.Now()
	ctx, span := l.tracer.Start(ctx, "send "+streams.DirectoryStream, trace.SpanKindProducer)
	if span.On() && len(events) > 0 {
		span.Set(
			semconv.MessagingSystemKey.String("nats"),
			semconv.MessagingOperationTypeSend,
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
	encoded := make([][]byte, len(events))
	ids := make(map[string]bool, len(events))
	for i, e := range events {
		if e.ID == "" {
			id, err := ulid.New(ulid.Timestamp(e.At), rand.Reader)
			if err != nil {
				return 0, fmt.Errorf("directory: append to %s: %w", subject, err)
			}
			e.ID = id.String()
		}
		ids[e.ID] = true
		if encoded[i], err = domain.EncodeEvent(e); err != nil {
			return 0, fmt.Errorf("directory: append to %s: %w", subject, err)
		}
	}
	if l.admit != nil {
		bytes := 0
		for _, text := range encoded {
			bytes += len(text)
		}
		if err := l.admit(bytes); err != nil {
			return 0, fmt.Errorf("directory: append to %s: %w", subject, err)
		}
	}
	unsure := false
	err = jsapi.Retry{If: isRepeatable}.Do(ctx, func(ctx context.Context) (err error) {
		seq, err = jsapi.Append(ctx, l.nc, messages(subject, expected, encoded)...)
		switch {
		case errors.Is(err, jsapi.ErrOutcomeUnknown):
			// Sent again on the same condition: if the first is stored, or is stored yet, the
			// second meets a conflict, and the other way round.
			unsure = true
		case errors.Is(err, ErrConflict) && unsure:
			// The conflict can be with these very events.
			found, last, lookErr := l.find(ctx, subject, expected, ids)
			if lookErr != nil || last == expected {
				return errors.Join(errUnseen, lookErr)
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
	if err != nil {
		return 0, fmt.Errorf("directory: append to %s: %w", subject, err)
	}
	return seq, nil
}

// isRepeatable reports whether an append is sent again after an error: nothing was stored, or
// nothing twice.
func isRepeatable(err error) bool {
	return errors.Is(err, jsapi.ErrOutcomeUnknown) || errors.Is(err, jsapi.ErrNoStream) ||
		errors.Is(err, jsapi.ErrNoLeader) || errors.Is(err, errUnseen)
}

var errUnseen = errors.New("what it conflicts with cannot be seen yet")

// messages makes the messages of an append anew for each try: sending adds headers to them.
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

// find looks for events after a sequence of a subject by their ids. It gives the sequence of the
// last of them, 0 when there is none, and that of the subject's last event.
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
