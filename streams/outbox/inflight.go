package outbox

import (
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// mail is the metadata of a message from the queue.
type mail struct {
	id       string
	sequence uint64
	// tries includes the current one.
	tries   uint64
	expires time.Time
}

func parseMail(msg jetstream.Msg) (mail, error) {
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

// state is what this process does with a mail.
type state int

const (
	// idle mails are not delivered by this process at the moment.
	idle state = iota
	// delivering mails are being delivered.
	delivering
	// done mails must be removed, and the broker has not confirmed the removal.
	done
)

// inFlight is the state of mails in this process, by sequence. The broker may hand a mail out again
// while it is being delivered; the state keeps the process from delivering it twice.
type inFlight struct {
	mu    sync.Mutex
	mails map[uint64]state
}

// start marks an idle mail as delivering, and returns the state before.
func (f *inFlight) start(sequence uint64) state {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.mails[sequence]
	if before == idle {
		f.mails[sequence] = delivering
	}
	return before
}

// set changes a mail's state.
func (f *inFlight) set(sequence uint64, s state) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s == idle {
		delete(f.mails, sequence)
		return
	}
	f.mails[sequence] = s
}
