package sendwindow

import (
	"slices"
	"time"
)

// Interval is how long a hub waits for an ack, of a hello as of events.
const Interval = 5 * time.Second

// leastHello is the least time between two hellos that are not an answer to silence: a hub that
// drops events all the time would otherwise say nothing but hello.
const leastHello = time.Second

// Window is the hub's end of the link. The zero Window is not connected. It is not safe for
// concurrent use.
type Window struct {
	// Limit is the most events without an ack. 0 is no limit: that is a hub that breaks the rule.
	Limit uint64

	connected bool
	greeting  bool      // a hello has no ack yet
	helloAt   time.Time // when the last hello went out; zero: none on this connection
	through   uint64    // what the cloud has acknowledged
	sent      uint64    // the highest number sent since the last turn back
	deadline  time.Time // when what is out is sent again
	flying    []uint64  // the last numbers of the messages that are out, in order
	// echoes is how many acks that repeat through are still due and mean nothing.
	echoes int
}

// Step is what to do next. When neither Hello nor From is set there is nothing to do before Wake
// (zero: before something happens).
type Step struct {
	Hello bool
	// From is the first number of the next events message, Limit how many it may have at most; 0 is
	// no message.
	From  uint64
	Limit uint64
	Wake  time.Time
}

// Connect begins a connection.
func (w *Window) Connect() { *w = Window{Limit: w.Limit, connected: true, greeting: true} }

// Disconnect ends it.
func (w *Window) Disconnect() { *w = Window{Limit: w.Limit} }

// Connected is whether there is a connection.
func (w *Window) Connected() bool { return w.connected }

// HelloAcked is whether the cloud has answered the hello of this connection.
func (w *Window) HelloAcked() bool { return w.connected && !w.greeting }

// Next says what to do at now by a hub that holds the numbers from oldest to newest.
func (w *Window) Next(now time.Time, oldest, newest uint64) Step {
	if !w.connected {
		return Step{}
	}
	if w.greeting {
		if again := w.helloAt.Add(Interval); !w.helloAt.IsZero() && now.Before(again) {
			return Step{Wake: again}
		}
		return Step{Hello: true}
	}
	if w.through+1 < oldest {
		if again := w.helloAt.Add(leastHello); now.Before(again) {
			return Step{Wake: again}
		}
		return Step{Hello: true}
	}
	if w.sent > w.through && !now.Before(w.deadline) {
		w.turnBack(len(w.flying))
	}
	free := newest - min(newest, w.sent)
	if w.Limit > 0 {
		free = min(free, w.Limit-min(w.Limit, w.sent-w.through))
	}
	if free > 0 {
		return Step{From: w.sent + 1, Limit: free}
	}
	if w.sent > w.through {
		return Step{Wake: w.deadline}
	}
	return Step{}
}

// HelloSent notes a hello: until its ack nothing else is sent.
func (w *Window) HelloSent(now time.Time) { w.greeting, w.helloAt = true, now }

// EventsSent notes an events message that ended with the number last.
func (w *Window) EventsSent(last uint64, now time.Time) {
	if w.sent == w.through { // nothing was out: the wait begins now
		w.deadline = now.Add(Interval)
	}
	w.sent = last
	w.flying = append(w.flying, last)
}

// Ack takes an ack of the hub's present log.
func (w *Window) Ack(through uint64, now time.Time) {
	if !w.connected {
		return
	}
	w.deadline = now.Add(Interval)
	switch {
	case w.greeting:
		w.greeting, w.through = false, through
		w.turnBack(len(w.flying))
	case through > w.through:
		w.through = through
		w.sent = max(w.sent, through)
		done := 0
		for done < len(w.flying) && w.flying[done] <= through {
			done++
		}
		w.flying = slices.Delete(w.flying, 0, done)
		// The cloud may have taken several messages at once and acknowledge each of them with the
		// same number.
		w.echoes = max(done-1, 0)
	case through == w.through && w.echoes > 0:
		w.echoes--
	case through == w.through && w.sent > w.through:
		w.turnBack(len(w.flying) - 1)
	case through < w.through: // the cloud has less than it said: it is the one to know
		w.through = through
		w.turnBack(0)
	}
}

// turnBack goes back to the first number without an ack. echoes acks are still to come for what was
// sent before.
func (w *Window) turnBack(echoes int) {
	w.sent, w.flying, w.echoes = w.through, w.flying[:0], max(echoes, 0)
}
