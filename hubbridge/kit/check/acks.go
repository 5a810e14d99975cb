package check

import (
	"fmt"
	"time"

	"hubcloud/hubbridge/codec"
	"hubcloud/hubbridge/protocol"
)

// withhold stops the acks of events.
func (s *script) withhold() { s.withholdAck = true }

// release acknowledges what has arrived, with one ack for each message as the service does, and
// goes on with acks.
func (s *script) release() {
	s.withholdAck = false
	for {
		if _, ok := s.events[s.stored+1]; !ok {
			break
		}
		s.stored++
	}
	if k := s.conn; k != nil && k.acked {
		for range k.owed {
			s.ack(k, s.log, s.stored, false)
		}
		k.owed = 0
	}
}

// sendAck sends one ack.
func (s *script) sendAck(log string, through uint64) {
	if k := s.conn; k != nil && k.acked {
		s.ack(k, log, through, false)
	}
}

// resendMark is a connection and how often the hub had sent events again on it. It must be taken
// before whatever makes the hub send again.
type resendMark struct {
	k      *connection
	before int
}

func (s *script) markResends() resendMark {
	if s.conn == nil {
		return resendMark{}
	}
	return resendMark{s.conn, s.conn.resends}
}

// awaitResend waits until the hub has sent events again since the mark. It returns false after
// limit and when the connection ends.
func (s *script) awaitResend(mark resendMark, limit time.Duration) (resent bool) {
	s.await(s.ctx, limit, func() bool {
		resent = mark.k != nil && mark.k.resends > mark.before
		return resent || s.conn != mark.k
	})
	return resent
}

// checkWithhold withholds the acks of events, until the hub sends them again.
func (s *script) checkWithhold() {
	s.awaitSilence()
	s.withhold()
	defer func() {
		if !s.needs("unknown-log") {
			s.release()
		}
	}()
	mark := s.markResends()
	if !s.provoke("resends", "sends-from-through", "same-content") {
		return
	}
	resent := s.awaitResend(mark, resendLimit)
	if s.conn == nil || s.conn != mark.k {
		s.hint("resends", "the connection ended before")
		return
	}
	wait := s.conn.resentAt.Sub(s.conn.owedAt).Round(time.Millisecond)
	switch {
	case !resent:
		s.fail("resends", nil, "events from %d on got no ack, and were not sent again within %v",
			s.stored+1, resendLimit)
	case wait < tooEarly:
		s.fail(
			"resends", nil, "events from %d on were sent again %v after they got no ack, want 5 s",
			s.stored+1, wait,
		)
	default:
		s.pass("resends")
	}
}

// unknownLog is the log of an ack that a hub must ignore.
const unknownLog = "hub-check-unknown"

// checkUnknownLog acknowledges the events on their way in another log. A hub that takes that for
// its own does not send them again.
func (s *script) checkUnknownLog() {
	s.withhold()
	defer s.release()
	if s.highest <= s.stored {
		if !s.provoke("unknown-log") {
			return
		}
		s.awaitSilence()
	}
	through := s.highest
	s.foreign = true
	s.sendAck(unknownLog, through)
	resent := s.awaitResend(s.markResends(), resendLimit)
	s.foreign = false
	// If resent, the line has failed already if judgeNumbers has found that the hub obeyed the ack.
	s.judgeResend("unknown-log", resent, "after an ack of log %q through %d the hub did not send events %d to %d of "+
		"its own log again within %v", unknownLog, through, s.stored+1, through, resendLimit)
}

// judgeResend decides a line of a hub that must send again.
func (s *script) judgeResend(line string, resent bool, format string, args ...any) {
	switch resends := s.results["resends"]; {
	case resent:
		s.pass(line)
	case resends != nil && resends.Status == Failed:
		s.hint(line, "cannot be judged: the hub does not send again without an ack")
	default:
		s.fail(line, nil, format, args...)
	}
}

// checkLower acknowledges less than before while events are on their way.
func (s *script) checkLower() {
	s.awaitSilence()
	if s.next() == 1 && !s.provoke("lower-through") {
		return
	}
	s.awaitSilence()
	s.withhold()
	defer s.release()
	if !s.provoke("lower-through") {
		return
	}
	lower := s.stored - min(s.stored, 1)
	k := s.conn
	if lower == s.stored || k == nil {
		s.hint("lower-through", "no event has been acknowledged before")
		return
	}
	s.lowered = &lower
	s.publish(k, "ack", codec.AppendAck(nil, s.log, lower))
	resent := s.awaitResend(s.markResends(), resendLimit)
	s.lowered = nil
	if !resent && s.conn != k {
		s.fail("lower-through", nil, "the connection ended after the lower through %d", lower)
		return
	}
	s.judgeResend("lower-through", resent, "after the lower through %d the hub did not send from %d again within %v",
		lower, s.stored+1, resendLimit)
}

// checkGap acknowledges no more than before, once for each message that has arrived, as the service
// does if the first one was lost. It waits until the hub has sent again by itself: its next 5 s have
// begun then, however long its devices take to cause events.
func (s *script) checkGap() {
	const line = "resends-after-gap"
	s.awaitSilence()
	s.withhold()
	defer s.release()
	mark := s.markResends()
	if !s.provoke(line) {
		return
	}
	if !s.awaitResend(mark, resendLimit) {
		s.hint(line, "cannot be judged: the hub does not send again without an ack")
		return
	}
	s.await(s.ctx, rewindPause, func() bool { return false })
	k := s.conn
	if k == nil {
		s.hint(line, "the connection ended before")
		return
	}
	mark = s.markResends()
	through, owed := s.stored, k.owed
	for k.owed = 0; owed > 0; owed-- {
		s.sendAck(s.log, through)
	}
	if s.awaitResend(mark, promptLimit) {
		s.pass(line)
		return
	}
	s.fail(
		line, nil,
		"acks repeated through %d while later events were on their way, and the hub did not send from "+
			"%d again within %v", through, through+1, promptLimit,
	)
}

// rewindPause is a little more than the second in which a hub that went back may ignore acks that
// repeat through.
const rewindPause = 1200 * time.Millisecond

// silenceLimit is how long awaitSilence waits for the outcomes of earlier commands.
const silenceLimit = 3 * time.Second

// awaitSilence waits until the hub has been silent for a while, so that the events of earlier commands do
// not disturb a step.
func (s *script) awaitSilence() {
	end := time.Now().Add(silenceLimit)
	for s.ctx.Err() == nil && time.Now().Before(end) {
		before := s.next()
		if !s.await(s.ctx, silence, func() bool { return s.highest+1 > before }) {
			return
		}
	}
}

// silence is how long a hub without anything to report sends nothing.
const silence = 700 * time.Millisecond

// checkFull fills the hub's queue of events with commands while no acks are sent, then acknowledges
// it in two parts.
func (s *script) checkFull() {
	if s.cfg.Commands == 0 {
		s.hint("send-window", "the step is omitted")
		s.hint("survives-full-queue", "the step is omitted")
		return
	}
	if !s.hasTarget("send-window", "survives-full-queue") {
		return
	}
	s.note(fmt.Sprintf(
		"sending %d commands to fill the hub's queue; on a real radio this takes a second or so for "+
			"each", s.cfg.Commands,
	))
	s.withhold()
	accepted := s.sendCommands(s.cfg.Commands)
	s.await(s.ctx, silence, func() bool { return s.conn == nil })
	if s.conn == nil {
		s.hint("send-window", "the connection ended before")
	} else if accepted > protocol.MaxUnacknowledged {
		s.pass("send-window")
	} else {
		s.hint(
			"send-window",
			"%d commands were accepted, which do not fill the window of %d events; --commands %d does",
			accepted, protocol.MaxUnacknowledged, fillWindow,
		)
	}
	// Every accepted command has an event; some arrive only once there are acks.
	goal := s.stored + uint64(accepted)
	half := s.stored + (s.highest-s.stored)/2
	s.sendAck(s.log, half)
	s.release()
	drained := s.await(s.ctx, drainLimit, func() bool { return s.stored >= goal })
	switch {
	case accepted == 0:
		s.hint("survives-full-queue", "no command was accepted")
	case drained:
		s.pass("survives-full-queue")
	default:
		s.fail(
			"survives-full-queue", nil,
			"%d commands were accepted, but only events through %d of at least %d arrived within "+
				"%v of the acks", accepted, s.stored, goal, drainLimit,
		)
	}
}

const (
	// drainLimit is how long a hub may take to send a full queue.
	drainLimit = 30 * time.Second
	// floodCalls is how many commands are on their way at once.
	floodCalls = 10
)

// sendCommands sends n commands and returns how many were accepted. It gives up after commandLimit
// for each, when the connection ends, and when the hub accepts none.
func (s *script) sendCommands(n int) (accepted int) {
	end := time.Now().Add(time.Duration(n) * commandLimit)
	for n > 0 && s.ctx.Err() == nil && time.Now().Before(end) {
		calls := make([]*call, min(n, floodCalls))
		for i := range calls {
			calls[i] = s.begin(protocol.MethodChannelsCommand, s.newCommand(), false)
		}
		s.wait(s.ctx, calls...)
		n -= len(calls)
		alive := s.conn != nil
		for _, a := range calls {
			if a.result != nil {
				accepted++
			}
		}
		if !alive || accepted == 0 {
			break
		}
	}
	return accepted
}
