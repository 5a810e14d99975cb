package check

import (
	"net"

	"hubcloud/hubbridge/protocol"
)

// reconnect ends the connection and waits for the next one with an acknowledged hello. abruptly
// sends a TCP reset in place of an orderly end.
func (s *script) reconnect(id string, abruptly bool) bool {
	number := s.connections
	if s.conn != nil && abruptly {
		if tcp, ok := s.conn.raw.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // a close then sends a reset; an orderly end serves too
		}
	}
	s.end()
	came := s.await(s.ctx, reconnectLimit, func() bool {
		return s.conn != nil && s.conn.number > number && s.conn.acked
	})
	s.gone = !came
	switch {
	case came:
		s.pass(id)
	case s.connections > number:
		s.fail(id, nil, "the hub connected again but sent no hello within %v", reconnectLimit)
	default:
		s.fail(id, nil, "the hub did not connect again within %v", reconnectLimit)
	}
	return came
}

// checkCut cuts the connection while events are on their way.
func (s *script) checkCut() {
	s.awaitSilence()
	s.withhold()
	provoked := s.provoke("continues-after-cut", "keeps-events")
	pending, through := s.highest, s.stored
	var held uint64
	s.ackNextHello = func(h protocol.Hello) (uint64, bool) {
		held = h.Oldest
		return max(through, h.Oldest-1), false
	}
	s.withholdAck = false
	if !s.reconnect("survives-cut", true) {
		return
	}
	_, certificates := s.inventory.current()
	if certificates == 1 {
		s.fail(
			"renews-certificate", nil,
			"the hub connected again with its first certificate, which ends within 20 days, "+
				"without enrolling",
		)
		s.hint("current-certificate", "the hub has one certificate only")
	}
	if !provoked {
		return
	}
	if held > through+1 {
		s.fail(
			"keeps-events", nil,
			"oldest is %d in the hello after the cut, but event %d was not acknowledged", held,
			through+1,
		)
	} else {
		s.pass("keeps-events")
	}
	continued := s.await(s.ctx, resendLimit, func() bool { return s.stored >= pending })
	if continued {
		s.pass("continues-after-cut")
	} else if held <= through+1 {
		s.fail(
			"continues-after-cut", nil,
			"events %d to %d, which were not acknowledged before the cut, did not arrive within %v "+
				"of the next hello", through+1, pending, resendLimit,
		)
	}
}

// checkTakeover closes the connection as the broker does when another one takes over, and answers
// the next hello with less than before, as a cloud does that was restored from a backup.
func (s *script) checkTakeover() {
	s.awaitSilence()
	if s.next() <= 2 && !s.provoke("restored-cloud") {
		s.reconnect("survives-takeover", false)
		return
	}
	s.awaitSilence()
	lower := s.stored - min(s.stored, 2)
	judge := s.stored > lower
	var oldest uint64
	if judge {
		s.ackNextHello = func(h protocol.Hello) (uint64, bool) {
			oldest = h.Oldest
			return min(lower, s.stored), false
		}
	}
	if !s.reconnect("survives-takeover", false) || !judge {
		return
	}
	ok := s.await(s.ctx, resendLimit, func() bool {
		// The hub sends again from lower + 1 if it still has the event, and else a second hello.
		return s.conn != nil && (s.conn.hellos > 1 || s.conn.next > lower+1)
	})
	if ok {
		s.pass("restored-cloud")
		return
	}
	s.fail(
		"restored-cloud", nil,
		"the hello was acknowledged through %d; the hub, which holds events from %d on, "+
			"sent neither events from %d on nor a hello within %v", lower, oldest, lower+1, resendLimit,
	)
	// The service would wait for ever. Go on where the hub is.
	s.stored = max(s.stored, s.highest)
	if s.conn != nil {
		s.conn.next = s.stored + 1
	}
}

// beyond is how much higher than newest the through of checkReject is.
const beyond = 10

// checkReject rejects the next connection, and answers the hello of the one after it with a higher
// through and with a member that version 1 does not have.
func (s *script) checkReject() {
	s.awaitSilence()
	s.rejectNext = true
	var higher uint64
	s.ackNextHello = func(h protocol.Hello) (uint64, bool) {
		higher = h.Newest + beyond
		s.raised = &higher
		return higher, true
	}
	if !s.reconnect("survives-rejection", false) {
		return
	}
	hellos := s.hellos
	// A hub that does not understand the ack sends no event, and repeats its hello after 5 s.
	arrived := func() bool { return s.lowestAbove(higher-beyond) != 0 }
	var a *call
	if s.target != nil {
		a = s.begin(protocol.MethodChannelsCommand, s.newCommand(), false)
	}
	repeated := false
	s.await(s.ctx, outcomeLimit, func() bool {
		repeated = repeated || s.hellos > hellos && !arrived()
		return arrived()
	})
	if a != nil {
		s.wait(s.ctx, a)
	}
	s.raised = nil
	if repeated {
		s.fail(
			"unknown-members", nil,
			"the hello was repeated although an ack with an unknown member answered it",
		)
	} else {
		s.pass("unknown-members")
	}
	switch first := s.lowestAbove(higher - beyond); first {
	case 0:
		s.hint("higher-through", "the hub has sent no event; %s", s.whyNoEvents())
	case higher + 1:
		s.pass("higher-through")
	default:
		s.fail(
			"higher-through", nil,
			"after through %d, which is above newest, the next event has the number %d, want %d",
			higher, first, higher+1,
		)
	}
}

// lowestAbove returns the lowest number above n that has arrived; 0 for none. The caller holds the
// mutex.
func (c *Check) lowestAbove(n uint64) (lowest uint64) {
	for seq := range c.events {
		if seq > n && (lowest == 0 || seq < lowest) {
			lowest = seq
		}
	}
	return lowest
}
