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
	"hubcloud/streams/jsapi"
	"hubcloud/streams/telemetry"
)

// A message is stored as one batch. This line does not compile if it may have too many events.
const _ = uint(jsapi.MaxBatch - protocol.MaxMessageEvents)

// handleEvents handles an events message, together with the events messages of the same log that
// wait behind it, as one atomic batch. It returns the number of these messages.
func (s *hubState) handleEvents(
	ctx context.Context, decoder *codec.EventsDecoder, message []byte,
) (messages int, err error) {
	metrics := s.shard.cfg.Metrics
	if s.isUnheard() {
		metrics.shed.Inc()
		return 1, nil
	}
	batch, err := decoder.Decode(s.hub, message)
	if err != nil {
		metrics.unreadable.Inc()
		s.shard.cfg.Logger.Debug("events message dropped", "hub_id", s.hub, "error", err)
		s.shard.cfg.Faults.Report(s.hub, FaultUnreadableMessages, err.Error())
		return 1, s.repeatAck(ctx)
	}
	batches, count := s.collect(decoder, batch, len(message))
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
		s.warnLimited("too many resets")
		span.End(nil)
		return len(batches), nil
	}
	if errors.Is(err, errOverBudget) {
		s.warnLimited("too much data")
		span.End(nil)
		return len(batches), nil
	}
	span.End(err)
	if err == nil {
		metrics.batch.Observe(time.Since(began).Seconds())
	} else {
		s.shard.cfg.Faults.Postpone(s.hub)
	}
	return len(batches), err
}

// repeatAck acknowledges the hub's log through the last stored number again, after a message that
// was dropped. The hub protocol requires this ack for one that could not be read: a hub that
// receives a number twice sends the events after it again at once, not only when its wait for an ack
// is over. A hub whose hello has no ack yet gets that one instead.
func (s *hubState) repeatAck(ctx context.Context) error {
	return s.withState(ctx, func() error {
		if s.log.ownLog != "" && !s.helloPending {
			s.ack(s.log.ownLog, s.log.through)
		}
		return nil
	})
}

// collect returns first and the batches of the events messages in the inbox that directly follow
// and can be stored together with first: they are of the hub's current log, and all events fit into
// one commit. size is the size of first's message, count the number of all events. While others use
// the replica, no message is added to sharedEvents: they wait for what is stored at once.
func (s *hubState) collect(
	decoder *codec.EventsDecoder, first codec.Batch, size int,
) (batches []codec.Batch, count int) {
	batches, count = []codec.Batch{first}, len(first.Events)
	most := jsapi.MaxBatch - protocol.MaxMessageEvents
	if s.shard.cfg.Budget.isShared(s.log.org) {
		most = sharedEvents
	}
	// Two messages of the largest size fit into a commit of the journal, and three do not.
	for s.loaded && first.Log == s.log.ownLog && size <= protocol.MaxMessageBytes && count <= most {
		message, ok := s.shard.nextEvents(s)
		if !ok {
			break
		}
		next, err := decoder.Decode(s.hub, message)
		if err != nil || next.Log != first.Log {
			s.shard.putBack(s, message)
			break
		}
		batches, count, size = append(batches, next), count+len(next.Events), size+len(message)
	}
	return batches, count
}

// store stores the new events of messages of one log, and acknowledges each message.
func (s *hubState) store(ctx context.Context, batches []codec.Batch) error {
	if err := s.admit(batches); err != nil {
		return err
	}
	if current, err := s.ensureOwnLog(ctx, batches); err != nil || !current {
		return err
	}
	if !s.log.owned() {
		return s.ackUnowned(ctx, batches)
	}
	plan := s.planStore(batches)
	if plan.beyond > 0 && len(plan.records) == 0 {
		if err := s.checkEnd(ctx); err != nil {
			return err
		}
	}
	if err := s.spend(plan.records); err != nil {
		return err
	}
	if err := s.forgetDevices(ctx, plan.forgotten); err != nil {
		return err
	}
	if len(plan.records) > 0 {
		if err := s.append(ctx, plan.records); err != nil {
			return err
		}
	}
	plan.count(s.shard.cfg.Metrics, &s.stats)
	s.noteEvents(&plan)
	for _, through := range plan.acks {
		s.ack(s.log.ownLog, through)
	}
	return nil
}

// checkEnd returns errStale if the hub's log has an event after the last one that s knows. A former
// holder of the lease can still append through the next holder's writer, whose state of the hub then
// lacks that. The next append finds out, but messages beyond the known end lead to none. Since they
// cost the hub nothing, checkEnd looks at most once in endCheckPause.
func (s *hubState) checkEnd(ctx context.Context) error {
	now := s.now()
	if now.Sub(s.endChecked).Abs() < endCheckPause {
		return nil
	}
	s.endChecked = now
	events, err := s.shard.cfg.Logs.LastEvents(ctx, s.hub)
	for _, event := range events {
		if event.Seq > s.log.lastEventSeq {
			s.loaded = false
			return errStale
		}
	}
	return err
}

// ensureOwnLog reports whether the messages are of the hub's own log. If they begin a new log, it
// switches to that log first. Other messages are not stored, and ensureOwnLog has sent the acks
// that they get. collect compared the logs too, but the state may have been loaded again since.
func (s *hubState) ensureOwnLog(
	ctx context.Context, batches []codec.Batch,
) (current bool, err error) {
	ownLog, first := batches[0].Log, batches[0].First
	switch {
	case s.log.released && s.log.owned():
		// No ack: the next hello shows which organization's events these are.
		return false, nil
	case ownLog == s.log.ownLog:
		return true, nil
	case slices.Contains(s.log.retired, ownLog):
		// From a connection of before the reset. An ack would name another log than the hub's.
		s.shard.cfg.Metrics.strays.Add(float64(len(batches)))
		return false, nil
	case !s.log.owned():
		// Without an organization there is no event log that could have a gap.
		return true, s.switchLog(ctx, ownLog, first-1)
	case first != 1:
		// The hub was reset, and its hello did not arrive. After the ack of 0 the hub sends from
		// its first number, or says hello with the oldest number that it holds.
		for range batches {
			s.ack(ownLog, 0)
		}
		return false, nil
	default:
		return true, s.switchLog(ctx, ownLog, 0)
	}
}

// admit returns the error of Config.Admit for the events of batches. Events that are not stored
// need space too, for the record of a skip or for the checkpoint of a hub without an organization.
func (s *hubState) admit(batches []codec.Batch) error {
	bytes := 0
	for i := range batches {
		for _, e := range batches[i].Events {
			bytes += len(e.Payload) + eventOverhead
		}
	}
	return s.admitBytes(bytes)
}

// admitBytes returns the error of Config.Admit for a number of bytes.
func (s *hubState) admitBytes(bytes int) error {
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
func (s *hubState) forgetDevices(ctx context.Context, devices []int64) error {
	if len(devices) == 0 {
		return nil
	}
	if err := s.requireLease(); err != nil {
		return err // meanwhile the devices may have returned and have new names
	}
	origin := domain.Origin{
		At:    s.now(),
		Actor: domain.Actor{Kind: domain.ActorHub, ID: string(s.hub)},
	}
	return s.shard.cfg.Directory.ForgetDevices(ctx, origin, s.hub, devices)
}

// ackUnowned acknowledges the events of a hub without an organization, and stores none.
func (s *hubState) ackUnowned(ctx context.Context, batches []codec.Batch) error {
	unowned := 0
	for i := range batches {
		s.log.through = max(s.log.through, batches[i].Last())
		unowned += len(batches[i].Events)
	}
	s.log.released, s.dirty = false, true
	if err := s.flush(ctx); err != nil {
		return err
	}
	s.shard.cfg.Metrics.unowned.Add(float64(unowned))
	for range batches {
		s.ack(s.log.ownLog, s.log.through)
	}
	s.stats.unowned += unowned
	s.noteProgress(max(s.progress.announced, s.log.through), 0)
	return nil
}
