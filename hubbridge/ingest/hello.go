package ingest

import (
	"context"
	"errors"

	"hubcloud/hubbridge/codec"
	"hubcloud/streams/hublog"
)

// hello deals with a hello of the hub.
func (s *session) hello(ctx context.Context, message []byte) error {
	cfg := &s.shard.cfg
	if !s.mayGreet() {
		cfg.Metrics.hellos.WithLabelValues("limited").Inc()
		s.warnLimited("it says hello too often")
		return nil
	}
	h, err := codec.ParseHello(message)
	if err != nil {
		cfg.Metrics.hellos.WithLabelValues(helloOutcome(err)).Inc()
		s.shard.oddities.Do(
			func() { cfg.Log.Warn("a hello is passed over", "hub_id", s.hub, "error", err) },
		)
		return nil
	}
	err = s.settle(ctx, func() error {
		if err := s.agree(ctx, h); err != nil {
			return err
		}
		return s.introduce(ctx, h)
	})
	if errors.Is(err, errTooOften) {
		cfg.Metrics.hellos.WithLabelValues("limited").Inc()
		s.warnLimited("it is reset too often")
		return nil
	}
	if err != nil {
		return err
	}
	cfg.Metrics.hellos.WithLabelValues("ok").Inc()
	if s.presence.Online || s.greeting {
		s.greet()
		return nil
	}
	// The broker's word that the hub is connected is on its way. A hub that has its ack is online
	// to everybody: it can be added, and what is told of it has its hub.connected. One that says
	// hello again has waited long enough.
	s.greeting = true
	cfg.Check(s.hub, connectGrace)
	return nil
}

// greet acknowledges a hello.
func (s *session) greet() {
	s.greeting = false
	s.ack(s.log.name, s.log.through)
}

func helloOutcome(err error) string {
	if errors.Is(err, codec.ErrProtocol) {
		return "protocol"
	}
	return "unreadable"
}

// agree settles with the hub from where it goes on.
func (s *session) agree(ctx context.Context, h codec.Hello) error {
	cfg := &s.shard.cfg
	before := h.Oldest - 1
	// What follows from a hello is stored for a new log or a gap alone.
	if s.log.name != h.Log || before > s.log.through {
		if err := s.admitBytes(eventOverhead); err != nil {
			return err
		}
	}
	switch {
	case s.log.foreign:
		return s.passOver(ctx, h)
	case s.log.name != h.Log:
		return s.turnTo(ctx, h.Log, before)
	case before <= s.log.through:
		if h.Newest < s.log.through {
			s.shard.oddities.Do(func() {
				cfg.Log.Warn("a hub says that it never gave numbers that are stored",
					"hub_id", s.hub, "log", h.Log, "newest", h.Newest, "through", s.log.through)
			})
		}
	case !s.log.owned():
		// What a hub loses that nobody has added is no gap in anything.
		return s.turnTo(ctx, h.Log, before)
	case before-s.log.through <= s.log.slack:
		s.log.through = before
	default:
		from := s.log.through + 1
		if err := s.append(ctx, []hublog.Record{s.skipRecord(from, before)}); err != nil {
			return err
		}
		cfg.Metrics.lost.Add(float64(before - from + 1))
		s.tally.lost += before - from + 1
		cfg.Metrics.gapLost.Inc()
		cfg.Log.Warn(
			"a hub has lost events", "hub_id", s.hub, "log", h.Log, "from", from, "to", before,
		)
	}
	if s.log.slack > 0 {
		s.log.slack, s.log.seq = 0, max(s.log.seq, s.log.horizon)
		s.dirty = true
	}
	return nil
}

// passOver goes on behind everything that the hub holds: it is of an organization that has the hub
// no more. An organization that has added the hub since is told of the gap, because some of that
// may have happened in its time.
func (s *session) passOver(ctx context.Context, h codec.Hello) error {
	if s.log.owned() && s.log.name == h.Log && h.Newest > s.log.through {
		if err := s.append(ctx, []hublog.Record{
			s.skipRecord(s.log.through+1, h.Newest),
		}); err != nil {
			return err
		}
		s.shard.cfg.Metrics.gapLost.Inc()
	}
	s.log.retired = retire(s.log.retired, s.log.name, h.Log)
	if s.log.name != h.Log {
		s.log.through = 0
	}
	s.log.name, s.log.through, s.log.slack = h.Log, max(h.Newest, s.log.through), 0
	s.log.foreign, s.dirty = false, true
	return s.flush(ctx)
}

// introduce keeps what the hub says of itself. Without a record in the bucket it waits for the
// broker's word that the hub is there.
func (s *session) introduce(ctx context.Context, h codec.Hello) error {
	s.presence.HubID = s.hub
	s.presence.Firmware, s.presence.Network = h.Firmware, codec.MarshalNetwork(h.Network, s.now())
	s.presenceDirty = s.presenceDirty || s.presenceRevision > 0
	return s.putPresence(ctx)
}
