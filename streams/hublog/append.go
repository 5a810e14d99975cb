package hublog

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/logformat"
	"hubcloud/streams/telemetry"
)

const (
	// maxBatches is how many batches are under way at once; the broker allows 1,000 over all
	// clients. Single messages need no slot, so that the commands of a hub whose stream has no
	// leader do not delay other hubs.
	maxBatches = 256
	// appendTries is how often a batch is sent while the broker rejects it for too many batches.
	appendTries = 5
	// appendPause is the pause before the second try; it doubles.
	appendPause = 5 * time.Millisecond
	// maxPayload is the most bytes of one record: a hub's largest event with its envelope, and far
	// below the broker's limit.
	maxPayload = 64 << 10
)

// Record is an event to be stored.
type Record struct {
	// FromCloud reports whether the cloud wrote the event (a `hub.*` event); otherwise the hub did.
	FromCloud bool
	// Payload is a domain.HubEvent as one line of JSON, its type first.
	Payload []byte
	// EpochID is the id of the log's epoch.
	EpochID domain.EpochID
	// OrgID is the organization that has the hub, for readers of the log without access to the
	// directory. It may be empty.
	OrgID string
	// OwnLog is the hub's name for its log; "" for none. Through is a number of that log: with this
	// record everything up to Through is stored or known to be lost.
	OwnLog  string
	Through uint64
	// Connection is opaque text on one line, stored with hub.connected and hub.disconnected.
	Connection string
}

// Append stores 1 to jsapi.MaxBatch events, in order, and wholly or not at all. The stream's last
// event must have the sequence expected; 0 means that the stream has no event, for instance because
// all have expired. Append returns the sequence of the last record; the others precede it without a
// gap. It creates the stream if it is missing. Errors: ErrConflict; ErrOutcomeUnknown, the only one
// after which the events may be stored; one that names the field of an invalid record; and those of
// Ensure and jsapi.Append.
func (l *Logs) Append(
	ctx context.Context, hub domain.HubID, expected uint64, records []Record,
) (last uint64, err error) {
	if len(records) == 0 || len(records) > jsapi.MaxBatch {
		return 0, fmt.Errorf(
			"hub log of %s: append %d events: must be 1 to %d", hub, len(records), jsapi.MaxBatch,
		)
	}
	msgs := make([]*nats.Msg, len(records))
	fromHub, fromCloud := streams.HubEventSubject(hub), streams.CloudEventSubject(hub)
	var headers headerCache
	for i := range records {
		r := &records[i]
		if err := r.validate(); err != nil {
			return 0, fmt.Errorf(
				"hub log of %s: append event %d of %d: %w", hub, i+1, len(records), err,
			)
		}
		subject := fromHub
		if r.FromCloud {
			subject = fromCloud
		}
		msgs[i] = r.message(subject, &headers)
	}
	jsapi.ExpectLast(msgs[0], streams.EventFilter(hub), expected)
	return l.store(ctx, hub, msgs)
}

// message returns the record as a message for the broker.
func (r *Record) message(subject string, headers *headerCache) *nats.Msg {
	msg := &nats.Msg{Subject: subject, Data: r.Payload, Header: make(nats.Header, 8)}
	msg.Header[logformat.HeaderEpoch] = headers.epochValue(r.EpochID)
	if r.OrgID != "" {
		msg.Header[logformat.HeaderOrg] = headers.value(r.OrgID)
	}
	if r.OwnLog != "" {
		msg.Header[logformat.HeaderOwnLog] = headers.value(r.OwnLog)
		msg.Header[logformat.HeaderThrough] = []string{strconv.FormatUint(r.Through, 10)}
	}
	if r.Connection != "" {
		msg.Header[logformat.HeaderConnection] = []string{r.Connection}
	}
	return msg
}

// validate returns an error that names the invalid field.
func (r *Record) validate() error {
	if len(r.Payload) > maxPayload {
		return fmt.Errorf("payload: has %d bytes, must be at most %d", len(r.Payload), maxPayload)
	}
	if r.EpochID.IsZero() {
		return errors.New("epoch: is missing")
	}
	return checkPayload(r.Payload)
}

// store stores messages as Append does, with a span and the metrics of appends.
func (l *Logs) store(
	ctx context.Context, hub domain.HubID, msgs []*nats.Msg,
) (last uint64, err error) {
	began := time.Now()
	ctx, span := l.cfg.Tracer.Start(ctx, "send hub log", trace.SpanKindProducer)
	if span.On() {
		span.Set(
			semconv.MessagingSystemKey.String("nats"), semconv.MessagingOperationTypeSend,
			semconv.MessagingOperationName("publish"),
			semconv.MessagingDestinationName(streams.HubStream(hub)),
			semconv.MessagingBatchMessageCount(len(msgs)), telemetry.KeyHubID.String(string(hub)),
		)
	}
	last, err = l.storeWithRetry(ctx, hub, msgs)
	span.End(err)
	switch {
	case err == nil:
		l.metrics.appended.Add(float64(len(msgs)))
		l.metrics.appendTime.Observe(time.Since(began).Seconds())
	case errors.Is(err, ErrConflict):
		l.metrics.conflicts.Inc()
	default:
		l.metrics.failures.Inc()
	}
	return last, err
}

// storeWithRetry creates the hub's stream if it is missing and sends the messages, several as one
// atomic batch. It sends a batch again that the broker dropped for having too many batches.
func (l *Logs) storeWithRetry(
	ctx context.Context, hub domain.HubID, msgs []*nats.Msg,
) (last uint64, err error) {
	if len(msgs) > 1 {
		select {
		case l.appendSlots <- struct{}{}:
			defer func() { <-l.appendSlots }()
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	shard := l.shard(hub)
	endAppend := shard.beginAppend(hub)
	defer func() { endAppend(last) }()
	recreated := false
	pause := appendPause
	for try := 1; ; try++ {
		if err := l.Ensure(ctx, hub); err != nil {
			return 0, err
		}
		last, err = jsapi.Append(ctx, shard.nc, msgs...)
		switch {
		case err == nil:
			return last, nil
		case errors.Is(err, jsapi.ErrNoStream) && !recreated:
			// The stream was deleted since it was ensured: Ensure creates it again.
			l.forget(hub)
			recreated = true
		case jsapi.IsBatchDropped(err) && try < appendTries:
			if !streams.Sleep(ctx, pause) {
				return 0, ctx.Err()
			}
			pause *= 2
		default:
			return 0, fmt.Errorf("hub log of %s: %w", hub, err)
		}
	}
}

// headerCache makes the values of headers. Records of one append mostly have the same values: the
// cache returns the same slice again for the last epoch and for up to three other values.
type headerCache struct {
	epochID domain.EpochID
	epoch   []string
	values  [3][]string
	next    int
}

func (c *headerCache) epochValue(id domain.EpochID) []string {
	if c.epoch == nil || c.epochID != id {
		c.epochID, c.epoch = id, []string{id.String()}
	}
	return c.epoch
}

func (c *headerCache) value(value string) []string {
	for _, v := range c.values {
		if v != nil && v[0] == value {
			return v
		}
	}
	v := []string{value}
	c.values[c.next%len(c.values)] = v
	c.next++
	return v
}
