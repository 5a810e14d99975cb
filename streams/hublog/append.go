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
	"hubcloud/streams/telemetry"
)

// Headers of a stored event.
const (
	headerEpoch      = "Hubcloud-Incarnation"
	headerOrg        = "Hubcloud-Organization"
	headerOwnLog     = "Hubcloud-Log"
	headerThrough    = "Hubcloud-Through"
	headerConnection = "Hubcloud-Connection"
)

const (
	// maxAppends is how many batches are under way at once; the broker takes 1,000 at a time over
	// all. Single messages take no place: a hub's commands whose log stands still must not hold up
	// what other hubs send.
	maxAppends = 256
	// appendTries is how often a batch is sent that the broker has no room for.
	appendTries = 5
	// appendPause is the pause before the second of them; it doubles.
	appendPause = 5 * time.Millisecond
	// maxPayload is the most bytes of one record: a hub's largest event with room for its envelope,
	// far below the broker's limit.
	maxPayload = 64 << 10
)

// The broker's codes for a batch that it did not take and of which nothing is stored. The first
// message of a batch is not answered, so a broker with too many batches shows as an incomplete one.
const (
	codeBatchIncomplete      = 10176
	codeBatchTooManyInflight = 10210
)

// Record is an event to be stored.
type Record struct {
	// Link is whether it is an event of the cloud (`hub.*`) rather than of the hub.
	Link bool
	// Payload is a domain.HubEvent as one line of JSON, its type first.
	Payload []byte
	// EpochID is the id of the log's epoch.
	EpochID domain.EpochID
	// OrgID is the organization that has the hub, for those who read the log without the directory;
	// may be empty.
	OrgID string
	// OwnLog and Through mean that with this record everything up to the number Through of the
	// hub's own log is dealt with. They mean nothing when OwnLog is empty.
	OwnLog  string
	Through uint64
	// Connection is an opaque text, kept with hub.connected and hub.disconnected; a single line.
	Connection string
}

// Append stores 1 to streams.MaxBatch events, in order and wholly or not at all, if the log's last
// event has the sequence expected; 0 means that there is none, for instance because all have
// expired. It answers the sequence of the last one: the others come before it without a gap. The
// stream is made when it is absent. Errors: ErrConflict, ErrUnsure, and those of a record that
// cannot be stored.
func (l *Logs) Append(
	ctx context.Context, hub domain.HubID, expected uint64, records []Record,
) (last uint64, err error) {
	if len(records) == 0 || len(records) > streams.MaxBatch {
		return 0, fmt.Errorf(
			"hub log of %s: append %d events: 1 to %d are allowed", hub, len(records),
			streams.MaxBatch,
		)
	}
	msgs := make([]*nats.Msg, len(records))
	device, link := streams.DeviceSubject(hub), streams.LinkSubject(hub)
	// Headers are slices of texts; those that all records of an append have in common are made
	// once.
	shared := sharedValues{}
	var epoch []string
	for i := range records {
		r := &records[i]
		if err := r.check(); err != nil {
			return 0, fmt.Errorf(
				"hub log of %s: append event %d of %d: %w", hub, i+1, len(records), err,
			)
		}
		msg := &nats.Msg{Subject: device, Data: r.Payload, Header: make(nats.Header, 8)}
		if r.Link {
			msg.Subject = link
		}
		if i == 0 || r.EpochID != records[i-1].EpochID {
			epoch = []string{r.EpochID.String()}
		}
		msg.Header[headerEpoch] = epoch
		if r.OrgID != "" {
			msg.Header[headerOrg] = shared.of(r.OrgID)
		}
		if r.OwnLog != "" {
			msg.Header[headerOwnLog] = shared.of(r.OwnLog)
			msg.Header[headerThrough] = []string{strconv.FormatUint(r.Through, 10)}
		}
		if r.Connection != "" {
			msg.Header[headerConnection] = []string{r.Connection}
		}
		msgs[i] = msg
	}
	streams.Expect(msgs[0], streams.EventFilter(hub), expected)
	return l.store(ctx, hub, msgs)
}

// AppendCommand stores what became of a command: its request or its outcome. Readers of events do
// not see it. It may be told from others only by its headers, so an ErrUnsure may be tried again at
// the price of a second record.
func (l *Logs) AppendCommand(
	ctx context.Context, hub domain.HubID, payload []byte, header nats.Header,
) (uint64, error) {
	return l.store(
		ctx, hub,
		[]*nats.Msg{{Subject: streams.CommandSubject(hub), Data: payload, Header: header}},
	)
}

func (r *Record) check() error {
	if len(r.Payload) > maxPayload {
		return fmt.Errorf(
			"payload has %d bytes: at most %d are allowed", len(r.Payload), maxPayload,
		)
	}
	if r.EpochID.IsZero() {
		return errors.New("epoch is missing")
	}
	return checkPayload(r.Payload)
}

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
	last, err = l.storeInTurn(ctx, hub, msgs)
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

func (l *Logs) storeInTurn(
	ctx context.Context, hub domain.HubID, msgs []*nats.Msg,
) (last uint64, err error) {
	if len(msgs) > 1 {
		select {
		case l.appends <- struct{}{}:
			defer func() { <-l.appends }()
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	shard := l.shard(hub)
	written := shard.writing(hub)
	defer func() { written(last) }()
	made := false
	pause := appendPause
	for try := 1; ; try++ {
		if err := l.Ensure(ctx, hub); err != nil {
			return 0, err
		}
		last, err = streams.Store(ctx, shard.nc, msgs...)
		switch {
		case err == nil:
			return last, nil
		case errors.Is(err, streams.ErrNoStream) && !made:
			l.forget(hub)
			made = true
		case notTaken(err) && try < appendTries:
			select {
			case <-time.After(pause):
				pause *= 2
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		default:
			return 0, fmt.Errorf("hub log of %s: %w", hub, err)
		}
	}
}

// notTaken reports whether the broker had no room for a batch, or lost a part of it before anything
// was stored.
func notTaken(err error) bool {
	var refusal *streams.BrokerError
	return errors.As(err, &refusal) &&
		(refusal.Code == codeBatchIncomplete || refusal.Code == codeBatchTooManyInflight)
}

// sharedValues makes header values that repeat once.
type sharedValues struct {
	values [3][]string
	next   int
}

func (s *sharedValues) of(value string) []string {
	for _, v := range s.values {
		if v != nil && v[0] == value {
			return v
		}
	}
	v := []string{value}
	s.values[s.next%len(s.values)] = v
	s.next++
	return v
}
