package hub

import (
	"slices"
	"time"
)

// resendInterval is how long a hub waits for the ack of a hello or of events before it sends again.
const resendInterval = 5 * time.Second

// minHelloInterval is the least time between two hellos that report dropped events. Without it, a
// hub that drops events all the time would send nothing but hellos.
const minHelloInterval = time.Second

// window is the flow control of one hub. The zero window is not connected. It is not safe for
// concurrent use.
type window struct {
	// limit is the most unacknowledged events in flight. 0 is no limit, which breaks the protocol.
	limit uint64

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

// step is the hub's next action. If neither hello nor from is set, there is nothing to do before
// wake (zero: before the next event or ack).
type step struct {
	hello bool
	// from is the first number of the next events message, 0 for none. limit is the most events
	// that it may have.
	from  uint64
	limit uint64
	wake  time.Time
}

// connect begins a connection, which starts with a hello.
func (w *window) connect() { *w = window{limit: w.limit, connected: true, helloPending: true} }

// disconnect ends the connection.
func (w *window) disconnect() { *w = window{limit: w.limit} }

// helloAcked reports whether the cloud has acknowledged the last hello of this connection.
func (w *window) helloAcked() bool { return w.connected && !w.helloPending }

// next returns the next action of a hub that keeps the numbers from oldest to newest.
func (w *window) next(now time.Time, oldest, newest uint64) step {
	if !w.connected {
		return step{}
	}
	if w.helloPending {
		if again := w.helloAt.Add(resendInterval); !w.helloAt.IsZero() && now.Before(again) {
			return step{wake: again}
		}
		return step{hello: true}
	}
	if w.acked+1 < oldest { // dropped events that were not acknowledged
		if again := w.helloAt.Add(minHelloInterval); now.Before(again) {
			return step{wake: again}
		}
		return step{hello: true}
	}
	if w.sent > w.acked && !now.Before(w.deadline) {
		w.rewind(len(w.inFlight))
	}
	free := newest - min(newest, w.sent)
	if w.limit > 0 {
		free = min(free, w.limit-min(w.limit, w.sent-w.acked))
	}
	if free > 0 {
		return step{from: w.sent + 1, limit: free}
	}
	if w.sent > w.acked {
		return step{wake: w.deadline}
	}
	return step{}
}

// helloSent notes that a hello was sent at now.
func (w *window) helloSent(now time.Time) { w.helloPending, w.helloAt = true, now }

// eventsSent notes that an events message up to the number last was sent at now.
func (w *window) eventsSent(last uint64, now time.Time) {
	if w.sent == w.acked { // nothing was in flight: the wait for an ack begins
		w.deadline = now.Add(resendInterval)
	}
	w.sent = last
	w.inFlight = append(w.inFlight, last)
}

// ack handles an ack of the hub's present log.
func (w *window) ack(through uint64, now time.Time) {
	if !w.connected {
		return
	}
	if w.introduced && through < w.acked { // stale: within a connection the number never falls
		return
	}
	w.deadline = now.Add(resendInterval)
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
func (w *window) rewind(duplicateAcks int) {
	w.sent, w.inFlight, w.duplicateAcks = w.acked, w.inFlight[:0], max(duplicateAcks, 0)
}
