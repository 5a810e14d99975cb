package feed

import (
	"context"
	"errors"
	"fmt"
	"time"

	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/journal"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/telemetry"
)

// maxPayload is the most bytes of one record: a hub's largest event with its envelope, and far
// below the broker's limit.
const maxPayload = 64 << 10

// maxRecords is the most events of one Append: more than one message of a hub has.
const maxRecords = 1000

// Append stores 1 to 1,000 events or states, in order, and wholly or not at all. For events, the
// log's last event must have the sequence expected; 0 means that the log has no event, for instance
// because all have expired. For states, the log's last record must, whatever it is. Append sets the
// records' hub, sequence and time. It returns the sequence of the last record; the others precede
// it without a gap. Errors: ErrConflict; ErrOutcomeUnknown, the only one after which the events may
// be stored; one that names the field of an invalid record; and jsapi.ErrNoLeader.
func (l *Logs) Append(
	ctx context.Context, hub domain.HubID, expected uint64, records []journal.Record,
) (last uint64, err error) {
	if len(records) == 0 || len(records) > maxRecords {
		return 0, fmt.Errorf(
			"hub log of %s: append %d events: must be 1 to %d", hub, len(records), maxRecords,
		)
	}
	for i := range records {
		if err := validate(&records[i]); err != nil {
			return 0, fmt.Errorf(
				"hub log of %s: append event %d of %d: %w", hub, i+1, len(records), err,
			)
		}
	}
	return l.store(ctx, hub, len(records), func(ctx context.Context) (uint64, error) {
		return l.cfg.Journal.Append(ctx, hub, expected, records)
	})
}

// validate returns an error that names the invalid field of an event. The journal validates states.
func validate(r *journal.Record) error {
	if r.Kind == journal.KindState {
		return nil
	}
	if len(r.Payload) > maxPayload {
		return fmt.Errorf("payload: has %d bytes, must be at most %d", len(r.Payload), maxPayload)
	}
	if r.EpochID.IsZero() {
		return errors.New("epoch: is missing")
	}
	return checkPayload(r.Payload)
}

// AppendCommand stores the record of a command: its request or its outcome. Readers of events do
// not see the record. A call that is repeated after ErrOutcomeUnknown may store the record twice.
// AppendCommand returns the record's sequence.
func (l *Logs) AppendCommand(
	ctx context.Context, hub domain.HubID, payload []byte,
) (sequence uint64, err error) {
	return l.store(ctx, hub, 1, func(ctx context.Context) (uint64, error) {
		return l.cfg.Journal.Append(ctx, hub, journal.AnyEnd, []journal.Record{
			{Kind: journal.KindCommand, Payload: payload},
		})
	})
}

// AppendState stores 1 to 1,000 states, in order, wholly or not at all, and whatever the log has.
// They belong to the epoch and the organization. Readers of events do not see them. AppendState
// returns the sequence of the last one. A call that is repeated after ErrOutcomeUnknown may store
// them twice.
func (l *Logs) AppendState(
	ctx context.Context, hub domain.HubID, epoch domain.EpochID, orgID string, payloads ...[]byte,
) (last uint64, err error) {
	if len(payloads) == 0 || len(payloads) > maxRecords {
		return 0, fmt.Errorf(
			"hub log of %s: append %d states: must be 1 to %d", hub, len(payloads), maxRecords,
		)
	}
	records := make([]journal.Record, len(payloads))
	for i, payload := range payloads {
		records[i] = journal.Record{
			Kind: journal.KindState, EpochID: epoch, OrgID: orgID, Payload: payload,
		}
	}
	return l.store(ctx, hub, len(records), func(ctx context.Context) (uint64, error) {
		return l.cfg.Journal.Append(ctx, hub, journal.AnyEnd, records)
	})
}

// store calls do, which stores records, with a span and the metrics of appends.
func (l *Logs) store(
	ctx context.Context, hub domain.HubID, records int,
	do func(context.Context) (last uint64, err error),
) (last uint64, err error) {
	began := time.Now()
	ctx, span := l.cfg.Tracer.Start(ctx, "send hub log", trace.SpanKindProducer)
	if span.On() {
		span.Set(
			semconv.MessagingSystemKey.String("nats"), semconv.MessagingOperationTypeSend,
			semconv.MessagingOperationName("publish"),
			semconv.MessagingDestinationName(streams.HubStream(hub)),
			semconv.MessagingBatchMessageCount(records), telemetry.KeyHubID.String(string(hub)),
		)
	}
	last, err = do(ctx)
	span.End(err)
	switch {
	case err == nil:
		l.metrics.appended.Add(float64(records))
		l.metrics.appendTime.Observe(time.Since(began).Seconds())
	case errors.Is(err, jsapi.ErrConflict):
		l.metrics.conflicts.Inc()
	default:
		l.metrics.failures.Inc()
	}
	return last, err
}
