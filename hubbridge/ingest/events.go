package ingest

import (
	"context"
	"errors"
	"slices"
	"time"

	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"hubcloud/domain"
	"hubcloud/hubbridge/codec"
	"hubcloud/hubbridge/protocol"
	"hubcloud/streams"
	"hubcloud/streams/hublog"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/telemetry"
)

// events handles an events message, together with the events messages of the same log that wait
// behind it, as one atomic batch.
func (s *session) events(ctx context.Context, decoder *codec.EventsDecoder, message []byte) error {
	metrics := s.shard.cfg.Metrics
	batch, err := decoder.Decode(s.hub, message)
	if err != nil {
		metrics.unreadable.Inc()
		s.shard.cfg.Logger.Debug("events message dropped", "hub_id", s.hub, "error", err)
		return s.withState(ctx, func() error {
			if s.log.ownLog != "" {
				s.ack(s.log.ownLog, s.log.through)
			}
			return nil
		})
	}
	batches, count := []codec.Batch{batch}, len(batch.Events)
	for s.loaded && batch.Log == s.log.ownLog && count+protocol.MaxMessageEvents <= jsapi.MaxBatch {
		message, ok := s.shard.nextEvents(s)
		if !ok {
			break
		}
		next, err := decoder.Decode(s.hub, message)
		if err != nil || next.Log != batch.Log {
			s.shard.putBack(s, message)
			break
		}
		batches, count = append(batches, next), count+len(next.Events)
	}
	began := time.Now()
	ctx, span := s.shard.cfg.Tracer.Start(ctx, "process hub events", trace.SpanKindConsumer)
	if span.On() {
		span.Set(
			semconv.MessagingSystemKey.String("mqtt"), semconv.MessagingOperationTypeProcess,
			semconv.MessagingOperationName("process"),
			semconv.MessagingDestinationTemplate(streams.EventsSubject(streams.AnyHub)),
			semconv.MessagingBatchMessageCount(count), telemetry.KeyHubID.String(string(s.hub)),
		)
	}
	err = s.withState(ctx, func() error { return s.store(ctx, batches) })
	if errors.Is(err, errResetLimited) {
		s.warnLimited("it is reset too often")
		span.End(nil)
		return nil
	}
	span.End(err)
	if err != nil {
		metrics.withheld.Add(float64(len(batches) - 1)) // finish counts one more
		return err
	}
	metrics.batch.Observe(time.Since(began).Seconds())
	return nil
}

// store stores the new events of messages of one log, and acknowledges each message. The log was
// the hub's current one when the messages were collected; a reload may have changed that.
func (s *session) store(ctx context.Context, batches []codec.Batch) error {
	if err := s.admit(batches); err != nil {
		return err
	}
	log, first := batches[0].Log, batches[0].First
	switch {
	case s.log.released && s.log.owned():
		return nil // the next hello shows which organization's events these are
	case log == s.log.ownLog:
	case slices.Contains(s.log.retired, log):
		s.shard.cfg.Metrics.strays.Add(float64(len(batches)))
		// From a connection of before the reset. An ack would name another log than the hub's.
		return nil
	case !s.log.owned():
		if err := s.switchLog(ctx, log, first-1); err != nil {
			return err
		}
	case first != 1:
		// The hub was reset and has not said hello. The ack of 0 has it send from its first number,
		// or say hello with the oldest number that it holds.
		for range batches {
			s.ack(log, 0)
		}
		return nil
	default:
		if err := s.switchLog(ctx, log, 0); err != nil {
			return err
		}
	}
	if !s.log.owned() {
		return s.ackUnowned(ctx, batches)
	}
	plan := s.plan(batches)
	if err := s.forgetDevices(ctx, plan.forgotten); err != nil {
		return err
	}
	if len(plan.records) > 0 {
		if err := s.append(ctx, plan.records); err != nil {
			return err
		}
	}
	plan.count(s.shard.cfg.Metrics, &s.stats)
	for _, through := range plan.acks {
		s.ack(log, through)
	}
	return nil
}

// admit reports whether the disk has space for the events of batches. Events that are not stored
// need space too: for a skip, or for the checkpoint of a hub without an organization.
func (s *session) admit(batches []codec.Batch) error {
	bytes := 0
	for i := range batches {
		for _, e := range batches[i].Events {
			bytes += len(e.Payload) + eventOverhead
		}
	}
	return s.admitBytes(bytes)
}

// admitBytes reports whether the disk has space for a number of bytes.
func (s *session) admitBytes(bytes int) error {
	if s.shard.cfg.Admit == nil {
		return nil
	}
	return s.shard.cfg.Admit(bytes)
}

// eventOverhead is the space that an event needs on disk beyond its payload: subject, headers,
// length and checksum.
const eventOverhead = 300

// forgetDevices deletes the names and rooms of devices that the hub has forgotten. It must be
// called before their events are stored: a client that has seen the event must not see the name,
// and after a crash in between the names would stay.
func (s *session) forgetDevices(ctx context.Context, devices []int64) error {
	if len(devices) == 0 {
		return nil
	}
	if err := s.requireLease(); err != nil {
		return err // the names may be those of devices that have returned since
	}
	origin := domain.Origin{
		At:    s.now(),
		Actor: domain.Actor{Kind: domain.ActorHub, ID: string(s.hub)},
	}
	return s.shard.cfg.Directory.ForgetDevices(ctx, origin, s.hub, devices)
}

// ackUnowned acknowledges the events of a hub without an organization, and stores none.
func (s *session) ackUnowned(ctx context.Context, batches []codec.Batch) error {
	unowned := 0
	for i := range batches {
		s.log.through = max(s.log.through, batches[i].Last())
		unowned += len(batches[i].Events)
	}
	s.log.released, s.dirty = false, true
	if err := s.flush(ctx); err != nil {
		return err
	}
	for range batches {
		s.ack(s.log.ownLog, s.log.through)
	}
	s.shard.cfg.Metrics.unowned.Add(float64(unowned))
	s.stats.unowned += unowned
	return nil
}

// plan is how a series of messages is stored and acknowledged.
type plan struct {
	records []hublog.Record
	// acks has for each message the number through which it is acknowledged.
	acks []uint64
	// forgotten has the devices of the records of device.forgotten.
	forgotten []int64

	// repeats counts events that are stored already, beyond messages that begin after the next
	// number, flaws events that cannot be stored.
	repeats, beyond int
	flaws           map[codec.Flaw]int
}

// plan returns the records of the events that are new, and the acks of all messages. It ignores
// events that are stored already, and messages that begin after the next number.
func (s *session) plan(batches []codec.Batch) plan {
	p := plan{acks: make([]uint64, 0, len(batches))}
	through := s.log.through
	for i := range batches {
		batch := &batches[i]
		if batch.First > through+1 {
			p.beyond++
			p.acks = append(p.acks, through)
			continue
		}
		known := min(through+1-batch.First, uint64(len(batch.Events)))
		p.repeats += int(known)
		for _, e := range batch.Events[known:] {
			through++
			if e.Flaw == "" {
				p.records = append(p.records, s.deviceRecord(e.Payload, through))
				if e.Forgotten != nil {
					p.forgotten = append(p.forgotten, *e.Forgotten)
				}
				continue
			}
			p.records = append(p.records, s.skipRecord(through, through))
			if p.flaws == nil {
				p.flaws = make(map[codec.Flaw]int)
			}
			p.flaws[e.Flaw]++
		}
		p.acks = append(p.acks, through)
	}
	return p
}

// count counts what was stored and ignored.
func (p *plan) count(m *Metrics, t *sessionStats) {
	flawed := 0
	for flaw, n := range p.flaws {
		m.flawed.WithLabelValues(string(flaw)).Add(float64(n))
		flawed += n
	}
	m.gapMalformed.Add(float64(flawed))
	m.stored.Add(float64(len(p.records) - flawed))
	m.repeats.Add(float64(p.repeats))
	m.beyond.Add(float64(p.beyond))
	t.malformed += flawed
	t.stored += len(p.records) - flawed
	t.repeats += p.repeats
}
