package ingest

import (
	"context"
	"errors"

	"hubcloud/hubbridge/codec"
	"hubcloud/streams/journal"
)

// handleHello handles a hello of the hub.
func (s *hubState) handleHello(ctx context.Context, message []byte) error {
	cfg := &s.shard.cfg
	if !cfg.Budget.allowHello(s.hub) {
		s.noteHello(nil)
		cfg.Metrics.hellos.WithLabelValues("limited").Inc()
		s.warnLimited("too many hellos")
		return nil
	}
	h, err := codec.ParseHello(message)
	s.noteHello(err)
	if err != nil {
		cfg.Metrics.hellos.WithLabelValues(helloOutcome(err)).Inc()
		s.shard.protocolWarnings.Do(
			func() { cfg.Logger.Warn("hello ignored", "hub_id", s.hub, "error", err) },
		)
		return nil
	}
	err = s.withState(ctx, func() error {
		if err := s.reconcile(ctx, h); err != nil {
			return err
		}
		return s.saveHello(ctx, h)
	})
	if errors.Is(err, errResetLimited) {
		cfg.Metrics.hellos.WithLabelValues("limited").Inc()
		s.warnLimited("too many resets")
		return nil
	}
	if err != nil {
		return err
	}
	cfg.Metrics.hellos.WithLabelValues("ok").Inc()
	s.noteProgress(h.Newest, 0)
	if s.presence.Online || s.helloPending {
		s.ackHello()
		return nil
	}
	// The broker has not reported the hub's connection yet. The ack waits for the report: a hub
	// with an ack must be online for every client, and hub.connected must precede its events. A
	// repeated hello is acknowledged without the report.
	s.helloPending = true
	s.shard.checkPresence(s.hub, connectGrace)
	return nil
}

// ackHello acknowledges the last hello.
func (s *hubState) ackHello() {
	s.helloPending = false
	s.ack(s.log.ownLog, s.log.through)
}

// helloOutcome returns the metric label for a hello that was not understood.
func helloOutcome(err error) string {
	if errors.Is(err, codec.ErrProtocol) {
		return "protocol"
	}
	return "unreadable"
}

// reconcile compares a hello with the hub's log: it records a reset or a gap, and determines the
// number from which the hub continues.
func (s *hubState) reconcile(ctx context.Context, h codec.Hello) error {
	cfg := &s.shard.cfg
	before := h.Oldest - 1
	// Only a new log or a gap needs space on the disk.
	if s.log.ownLog != h.Log || before > s.log.through {
		if err := s.admitBytes(eventOverhead); err != nil {
			return err
		}
	}
	switch {
	case s.log.released:
		return s.skipReleased(ctx, h)
	case s.log.ownLog != h.Log:
		return s.switchLog(ctx, h.Log, before)
	case before <= s.log.through:
		if h.Newest < s.log.through {
			s.shard.protocolWarnings.Do(func() {
				cfg.Logger.Warn("hub does not know numbers that are stored",
					"hub_id", s.hub, "log", h.Log, "newest", h.Newest, "through", s.log.through)
			})
		}
	case !s.log.owned():
		// Without an organization there is no event log that could have a gap.
		return s.switchLog(ctx, h.Log, before)
	case before-s.log.through <= s.log.unaccounted:
		s.log.through = before
	default:
		from := s.log.through + 1
		if err := s.append(ctx, []journal.Record{s.skipRecord(from, before, "")}); err != nil {
			return err
		}
		cfg.Metrics.lost.Add(float64(before - from + 1))
		s.stats.lost += before - from + 1
		cfg.Metrics.gapLost.Inc()
		cfg.Logger.Warn(
			"hub lost events", "hub_id", s.hub, "log", h.Log, "from", from, "to", before,
		)
	}
	if s.log.unaccounted > 0 {
		s.log.unaccounted, s.log.accountedSeq = 0, max(s.log.accountedSeq, s.log.streamLastSeq)
		s.dirty = true
	}
	return nil
}

// skipReleased skips everything that the hub holds, because it belongs to the organization that has
// released the hub. If another organization has added the hub since, its log gets a gap: some of
// the skipped events may have happened in its time.
func (s *hubState) skipReleased(ctx context.Context, h codec.Hello) error {
	if s.log.owned() && s.log.ownLog == h.Log && h.Newest > s.log.through {
		if err := s.append(ctx, []journal.Record{
			s.skipRecord(s.log.through+1, h.Newest, ""),
		}); err != nil {
			return err
		}
		s.shard.cfg.Metrics.gapLost.Inc()
	}
	s.log.retired = retire(s.log.retired, s.log.ownLog, h.Log)
	if s.log.ownLog != h.Log {
		s.log.through = 0
	}
	s.log.ownLog, s.log.through, s.log.unaccounted = h.Log, max(h.Newest, s.log.through), 0
	s.log.released, s.dirty = false, true
	return s.flush(ctx)
}

// saveHello saves what a hello tells of the hub in the presence bucket. A hub without a record in
// the bucket gets its first one with the broker's report of the connection.
func (s *hubState) saveHello(ctx context.Context, h codec.Hello) error {
	s.presence.HubID = s.hub
	s.presence.Firmware, s.presence.Network = h.Firmware, codec.MarshalNetwork(h.Network, s.now())
	s.presence.Credentials = h.Credentials
	s.presenceDirty = s.presenceDirty || s.presenceRevision > 0
	return s.putPresence(ctx)
}
