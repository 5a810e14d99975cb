package check

import (
	"context"
	"slices"
	"time"
)

const (
	// resendLimit is how long the script waits for what a hub must do after 5 s.
	resendLimit = 15 * time.Second
	// tooEarly is the shortest time that counts as 5 s.
	tooEarly = 2 * time.Second
	// promptLimit is the longest wait for what a hub must do at once. It is less than the 5 s,
	// minus rewindPause, after which a hub sends again in any case.
	promptLimit = 3 * time.Second
	// reconnectLimit is how long the script waits for the next connection: more than the half
	// minute that a hub may wait, varied at random.
	reconnectLimit = time.Minute
	// outcomeLimit is how long the script waits for the outcome of a command: more than the half
	// minute that a gateway may take for a device that it interviews.
	outcomeLimit = 40 * time.Second
)

// script is the state of the script. The Check's mutex is held while its methods run, except while
// they wait.
type script struct {
	*Check
	ctx context.Context

	devices []listedDevice
	// target is the channel that gets the commands; nil if the hub has none.
	target *target
	// started and lastCommand make ids of commands that no other check has used.
	started     time.Time
	lastCommand int
	// unready is a command that the hub answered with hub_unavailable; nil for none.
	unready *commandParams
	// gone is whether the hub has not come back after its connection ended.
	gone bool
	// waited is how long the hub has been asked again because it answered hub_unavailable.
	waited time.Duration
}

// runScript goes through the steps that the selected lines need.
func (c *Check) runScript(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &script{Check: c, ctx: ctx, started: time.Now()}
	if !s.awaitHub() {
		return
	}
	for _, step := range steps {
		if ctx.Err() != nil || s.gone {
			return
		}
		if !c.needs(step.name) {
			continue
		}
		if !s.connected() {
			return
		}
		c.cfg.OnStep(step.text)
		step.do(s)
	}
}

// needs reports whether a selected line needs a step. The steps that follow devices.list need it.
func (c *Check) needs(wanted string) bool {
	return slices.ContainsFunc(c.lines, func(l Line) bool {
		return slices.ContainsFunc(l.steps, func(needed string) bool {
			return needed == wanted || wanted == "devices" &&
				!slices.Contains([]string{"hello", "unknown-method", "stranger"}, needed)
		})
	})
}

// awaitHub waits for the first hello, and withholds its ack if a line needs that. It returns false
// if the hub does not come.
func (s *script) awaitHub() bool {
	s.cfg.OnStep("waiting for the hub to enrol and connect")
	s.withholdHello = s.needs("hello")
	if !s.await(s.ctx, s.cfg.Timeout, func() bool { return s.conn != nil && s.conn.hellos > 0 }) {
		s.hintFirst("enrols", "no enrolment came")
		s.hintFirst("connects", "no connection came")
		s.hintFirst("hello-fields", "no hello came")
		return false
	}
	if s.withholdHello {
		s.checkHelloRepeats()
	}
	return true
}

// checkHelloRepeats waits for the hello to be repeated and acknowledges it.
func (s *script) checkHelloRepeats() {
	s.cfg.OnStep("withholding the ack of the hello")
	first, number := s.lastHello()
	// A connection that ends meanwhile begins the wait anew.
	came := s.await(s.ctx, resendLimit, func() bool {
		if s.conn != nil && s.conn.number != number && s.conn.hellos > 0 {
			first, number = s.lastHello()
		}
		return s.conn != nil && s.conn.number == number && s.conn.hellos > 1
	})
	s.withholdHello = false
	k := s.conn
	if k == nil || k.hellos == 0 {
		return
	}
	wait := k.helloAt.Sub(first).Round(time.Millisecond)
	switch {
	case !came:
		s.fail(
			"hello-repeats", nil, "no second hello within %v of the first, which got no ack",
			resendLimit,
		)
	case wait < tooEarly:
		s.fail("hello-repeats", nil, "the second hello came after %v, want 5 s", wait)
	default:
		s.pass("hello-repeats")
	}
	if !k.acked {
		s.ackHello(k, s.stored, false)
	}
}

// lastHello returns when the last hello of the connection arrived, and the connection's number.
func (c *Check) lastHello() (time.Time, int) {
	if c.conn == nil {
		return time.Now(), 0
	}
	return c.conn.helloAt, c.conn.number
}

// connected waits until the hub is connected and its hello acknowledged.
func (s *script) connected() bool {
	return s.await(s.ctx, reconnectLimit, func() bool { return s.conn != nil && s.conn.acked })
}
