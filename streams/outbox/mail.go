package outbox

import (
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// mail is what the queue knows of one.
type mail struct {
	id       string
	sequence uint64
	// tries counts this one too.
	tries   uint64
	expires time.Time
}

// read takes apart what the broker handed out.
func read(msg jetstream.Msg) (mail, error) {
	m := mail{id: msg.Headers().Get(headerID)}
	metadata, err := msg.Metadata()
	if err != nil {
		return m, err
	}
	m.sequence, m.tries = metadata.Sequence.Stream, metadata.NumDelivered
	if m.expires, err = time.Parse(time.RFC3339Nano, msg.Headers().Get(headerExpires)); err != nil {
		return m, fmt.Errorf("header %s: %w", headerExpires, err)
	}
	return m, nil
}

// state is what this process has done with a mail.
type state int

const (
	// untouched: nothing, or it went back into the queue.
	untouched state = iota
	// inHand: it is being delivered.
	inHand
	// done: it is to be removed, and the broker has not confirmed that it is.
	done
)

// hands knows which mails this process has in hand, by sequence, so that one which the broker hands
// out again meanwhile (it heard nothing for too long) is not delivered a second time.
type hands struct {
	mu    sync.Mutex
	mails map[uint64]state
}

// take takes a mail into hand if it is untouched, and gives what it was.
func (h *hands) take(sequence uint64) state {
	h.mu.Lock()
	defer h.mu.Unlock()
	was := h.mails[sequence]
	if was == untouched {
		h.mails[sequence] = inHand
	}
	return was
}

// set changes a mail's state.
func (h *hands) set(sequence uint64, now state) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now == untouched {
		delete(h.mails, sequence)
		return
	}
	h.mails[sequence] = now
}
