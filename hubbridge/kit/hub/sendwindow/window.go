package sendwindow

import (
	"slices"
	"time"
)

// Interval is how long a hub waits for the ack of a hello or of events before it sends again.
const Interval = 5 * time.Second

// minHelloInterval is the least time between two hellos that report dropped events. Without it, a
// hub that drops events all the time would send nothing but hellos.
const minHelloInterval = time.Second

// Window is the flow control of one hub. The zero Window is not connected. It is not safe for
// concurrent use.
type Window struct {
	// Limit is the most unacknowledged events in flight. 0 is no limit, which breaks the protocol.
	Limit uint64

	connected    bool
	helloPending bool      // no ack yet for the hello of this connection, or for a later one
	introduced   bool      // the cloud has acknowledged the first hello of this connection
	helloAt      time.Time // of the last hello; zero before the first of this connection
	acked        uint64    // the number through which events are acknowledged
	sent         uint64    // the highest number sent since the last rewind
	deadline     time.Time // when the events in flight are sent again
	inFlight     []uint64  // the last number of each message in flight, ascending
	// duplicateAcks is how many more acks that repeat acked are expected and mean nothing.
	duplicateAcks int
}

// Step is the hub's next action. If neither Hello nor From is set, there is nothing to do before
// Wake (zero: before the next event or ack).
type Step struct {
	Hello bool
	// From is the first number of the next events message, 0 for none. Limit is the most events
	// that it may have.
	From  uint64
	Limit uint64
	Wake  time.Time
}

// Connect begins a connection, which starts with a hello.
func (w *Window) Connect() { *w = Window{Limit: w.Limit, connected: true, helloPending: true} }

// Disconnect ends the connection.
func (w *Window) Disconnect() { *w = Window{Limit: w.Limit} }

// Connected reports whether there is a connection.
func (w *Window) Connected() bool { return w.connected }

// HelloAcked reports whether the cloud has acknowledged the last hello of this connection.
func (w *Window) HelloAcked() bool { return w.connected && !w.helloPending }

// Next returns the next action of a hub that keeps the numbers from oldest to newest.
func (w *Window) Next(now time.Time, oldest, newest uint64) Step {
	if !w.connected {
		return Step{}
	}
	if w.helloPending {
		if again := w.helloAt.Add(Interval); !w.helloAt.IsZero() && now.Before(again) {
			return Step{Wake: again}
		}
		return Step{Hello: true}
	}
	if w.acked+1 < oldest { // dropped events that were not acknowledged
		if again := w.helloAt.Add(minHelloInterval); now.Before(again) {
			return Step{Wake: again}
		}
		return Step{Hello: true}
	}
	if w.sent > w.acked && !now.Before(w.deadline) {
		w.rewind(len(w.inFlight))
	}
	free := newest - min(newest, w.sent)
	if w.Limit > 0 {
		free = min(free, w.Limit-min(w.Limit, w.sent-w.acked))
	}
	if free > 0 {
		return Step{From: w.sent + 1, Limit: free}
	}
	if w.sent > w.acked {
		return Step{Wake: w.deadline}
	}
	return Step{}
}

// HelloSent notes that a hello was sent at now.
func (w *Window) HelloSent(now time.Time) { w.helloPending, w.helloAt = true, now }

// EventsSent notes that an events message up to the number last was sent at now.
func (w *Window) EventsSent(last uint64, now time.Time) {
	if w.sent == w.acked { // nothing was in flight: the wait for an ack begins
		w.deadline = now.Add(Interval)
	}
	w.sent = last
	w.inFlight = append(w.inFlight, last)
}

// Ack handles an ack of the hub's present log.
func (w *Window) Ack(through uint64, now time.Time) {
	if !w.connected {
		return
	}
	if w.introduced && through < w.acked { // stale: within a connection the number never falls
		return
	}
	w.deadline = now.Add(Interval)
	switch {
	case w.helloPending:
		w.helloPending, w.introduced, w.acked = false, true, through
		w.rewind(len(w.inFlight))
	case through > w.acked:
		w.acked = through
		w.sent = max(w.sent, through)
		done := 0
		for done < len(w.inFlight) && w.inFlight[done] <= through {
			done++
		}
		w.inFlight = slices.Delete(w.inFlight, 0, done)
		// The cloud may have stored several messages at once. It then acknowledges each of them
		// with the same number.
		w.duplicateAcks = max(done-1, 0)
	case through == w.acked && w.duplicateAcks > 0:
		w.duplicateAcks--
	case through == w.acked && w.sent > w.acked:
		w.rewind(len(w.inFlight) - 1)
	}
}

// rewind makes the number after the last acknowledged one the next to send. Messages that were in
// flight will still cause duplicateAcks acks.
func (w *Window) rewind(duplicateAcks int) {
	w.sent, w.inFlight, w.duplicateAcks = w.acked, w.inFlight[:0], max(duplicateAcks, 0)
}
