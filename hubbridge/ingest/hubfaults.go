package ingest

import (
	"fmt"
	"time"

	"hubcloud/hubbridge/presence"
)

// helloRecent is how long before the start of a connection its hello may seem to have come: the clocks
// of the hub's server and of this replica differ. The hello may be minutes older than the report of
// the connection, which waits for the end of the hub's former one at a server that is gone.
const helloRecent = 15 * time.Second

// reasonViolation is the broker's reason for ending a connection because of a packet that it does
// not accept.
const reasonViolation = "protocol violation"

// hubProgress is what Config.Faults needs to know of a hub.
type hubProgress struct {
	// announced is the highest number that the hub is known to have in its log.
	announced uint64
	// behind reports whether the hub has events that are not stored.
	behind bool
	// helloAt is when the hub last said hello.
	helloAt time.Time
}

// noteHello notes a hello, and the error of decoding it.
func (s *hubState) noteHello(err error) {
	s.progress.helloAt = s.shard.cfg.Now()
	s.shard.cfg.Faults.Hello(s.hub)
	if err != nil {
		s.shard.cfg.Faults.Report(s.hub, FaultUnreadableMessages, err.Error())
	}
}

// noteProgress notes the highest number that the hub has, after a message was dealt with. from is
// the first number of a message that began after the next number; 0 for none.
func (s *hubState) noteProgress(announced, from uint64) {
	p := &s.progress
	p.announced = announced
	switch through := s.log.through; {
	case through < announced:
		p.behind = true
		s.shard.cfg.Faults.Behind(s.hub, through, announced, from)
	case p.behind:
		p.behind = false
		s.shard.cfg.Faults.CaughtUp(s.hub)
	}
}

// noteEvents notes what is wrong with events messages, once they are dealt with.
func (s *hubState) noteEvents(plan *storePlan) {
	if plan.lastFlaw != "" {
		s.shard.cfg.Faults.Report(s.hub, FaultMalformedEvents,
			fmt.Sprintf("event %d: %s", plan.flawed, plan.lastFlaw))
	}
	s.noteProgress(max(s.progress.announced, plan.last), plan.from)
}

// noteTransitions notes recorded changes of the hub's connection.
func (s *hubState) noteTransitions(transitions []presence.Transition) {
	for _, t := range transitions {
		switch {
		case !t.Online && t.Reason != nil && *t.Reason == reasonViolation:
			s.shard.cfg.Faults.Report(s.hub, FaultMQTTViolation, "the broker does not accept a packet of the hub")
		case t.Online && !s.helloPending &&
			t.Connection.Start.Sub(s.progress.helloAt) > helloRecent:
			s.shard.cfg.Faults.Connected(s.hub)
		}
	}
}

// noteOffline notes that the hub is not connected.
func (s *hubState) noteOffline() {
	s.progress.behind, s.progress.announced = false, 0
	s.shard.cfg.Faults.Disconnected(s.hub)
}
