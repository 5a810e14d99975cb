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

// events deals with an events message, and with those that wait behind it if they go on with the
// same log: all as one atomic batch.
func (s *session) events(ctx context.Context, reader *codec.Reader, message []byte) error {
	metrics := s.shard.cfg.Metrics
	batch, err := reader.Events(s.hub, message)
	if err != nil {
		metrics.unreadable.Inc()
		s.shard.cfg.Log.Debug("an events message is dropped", "hub_id", s.hub, "error", err)
		return s.settle(ctx, func() error {
			if s.log.name != "" {
				s.ack(s.log.name, s.log.through)
			}
			return nil
		})
	}
	run, count := []codec.Batch{batch}, len(batch.Events)
	for s.loaded && batch.Log == s.log.name && count+protocol.MaxMessageEvents <= jsapi.MaxBatch {
		message, ok := s.shard.more(s)
		if !ok {
			break
		}
		next, err := reader.Events(s.hub, message)
		if err != nil || next.Log != batch.Log {
			s.shard.putBack(s, message)
			break
		}
		run, count = append(run, next), count+len(next.Events)
	}
	began := time.Now()
	ctx, span := s.shard.cfg.Tracer.Start(ctx, "process hub events", trace.SpanKindConsumer)
	if span.On() {
		span.Set(
			semconv.MessagingSystemKey.String("mqtt"),
			semconv.MessagingOperationTypeProcess,
			semconv.MessagingOperationName("process"),
			semconv.MessagingDestinationTemplate(streams.EventsSubject(streams.AnyHub)),
			semconv.MessagingBatchMessageCount(count),
			telemetry.KeyHubID.String(string(s.hub)),
		)
	}
	err = s.settle(ctx, func() error { return s.store(ctx, run) })
	if errors.Is(err, errTooOften) {
		s.warnLimited("it is reset too often")
		span.End(nil)
		return nil
	}
	span.End(err)
	if err != nil {
		metrics.withheld.Add(float64(len(run) - 1)) // one is counted with the error
		return err
	}
	metrics.batch.Observe(time.Since(began).Seconds())
	return nil
}

// store stores the new events of messages of one log, and acknowledges each message. More than one
// message is of the log that the hub has.
func (s *session) store(ctx context.Context, run []codec.Batch) error {
	if err := s.admit(run); err != nil {
		return err
	}
	log, first := run[0].Log, run[0].First
	switch {
	case s.log.foreign && s.log.owned():
		return nil // whose events these are is known once the hub has said hello
	case log == s.log.name:
	case slices.Contains(s.log.retired, log):
		s.shard.cfg.Metrics.strays.Add(float64(len(run)))
		// from a connection of before the reset: no ack either, it would be about another log
		return nil
	case !s.log.owned():
		if err := s.turnTo(ctx, log, first-1); err != nil {
			return err
		}
	case first != 1:
		// The hub was reset and did not say hello. From the middle of a log nothing can be told; it
		// sends again from the first number, or says hello with the oldest that it has, and then
		// the log begins.
		for range run {
			s.ack(log, 0)
		}
		return nil
	default:
		if err := s.turnTo(ctx, log, 0); err != nil {
			return err
		}
	}
	if !s.log.owned() {
		return s.forgo(ctx, run)
	}
	plan := s.plan(run)
	if err := s.forgetDevices(ctx, plan.forgotten); err != nil {
		return err
	}
	if len(plan.records) > 0 {
		if err := s.append(ctx, plan.records); err != nil {
			return err
		}
	}
	plan.count(s.shard.cfg.Metrics, &s.tally)
	for _, through := range plan.acks {
		s.ack(log, through)
	}
	return nil
}

// admit asks for room for a run of messages. Also what is not kept of them takes room: a skip, or
// the number up to which the events of a hub that nobody has added are acknowledged.
func (s *session) admit(run []codec.Batch) error {
	bytes := 0
	for i := range run {
		for _, e := range run[i].Events {
			bytes += len(e.Payload) + eventOverhead
		}
	}
	return s.admitBytes(bytes)
}

func (s *session) admitBytes(bytes int) error {
	if s.shard.cfg.Admit == nil {
		return nil
	}
	return s.shard.cfg.Admit(bytes)
}

// eventOverhead is what an event takes on disk beyond its payload: subject, headers, length and
// checksum.
const eventOverhead = 300

// forgetDevices forgets the names and rooms of devices that the hub has forgotten. It comes before
// their events are stored: whoever has heard of the event must not see the name any more, and what
// happens only afterwards would not happen at all after a crash in between.
func (s *session) forgetDevices(ctx context.Context, devices []int64) error {
	if len(devices) == 0 {
		return nil
	}
	if err := s.mustHold(); err != nil {
		return err // names that were set since, of devices that came back, are not to be forgotten
	}
	origin := domain.Origin{
		At:    s.now(),
		Actor: domain.Actor{Kind: domain.ActorHub, ID: string(s.hub)},
	}
	return s.shard.cfg.Directory.ForgetDevices(ctx, origin, s.hub, devices)
}

// forgo acknowledges events of a hub that nobody has added, and keeps none.
func (s *session) forgo(ctx context.Context, run []codec.Batch) error {
	unowned := 0
	for i := range run {
		s.log.through = max(s.log.through, run[i].Last())
		unowned += len(run[i].Events)
	}
	s.log.foreign, s.dirty = false, true
	if err := s.flush(ctx); err != nil {
		return err
	}
	for range run {
		s.ack(s.log.name, s.log.through)
	}
	s.shard.cfg.Metrics.unowned.Add(float64(unowned))
	s.tally.unowned += unowned
	return nil
}

// plan is what becomes of a run of messages.
type plan struct {
	records []hublog.Record
	// acks has, for each message, up to which number the log is settled after it.
	acks []uint64
	// forgotten are the devices that the records say the hub has forgotten.
	forgotten []int64

	repeats, beyond int
	flaws           map[codec.Flaw]int
}

// plan passes over what is stored already and what lies beyond the next number, and makes a record
// of everything else.
func (s *session) plan(run []codec.Batch) plan {
	p := plan{acks: make([]uint64, 0, len(run))}
	through := s.log.through
	for i := range run {
		batch := &run[i]
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

func (p *plan) count(m *Metrics, t *tally) {
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
