package outbox

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	// maxHeld is how many ordinary mails a process takes from the broker before they have their
	// turn, and maxHeldOfSender how many of one sender. What is beyond that goes back, so that the
	// mails of others behind it are seen.
	maxHeld         = 512
	maxHeldOfSender = 64
	// holdBack is how long a mail goes back the first time. Each further time doubles it, up to
	// maxHoldBack: mails that go back are handed out before those behind them, and must not be all
	// that is.
	holdBack    = 5 * time.Second
	maxHoldBack = 2 * time.Minute
)

// queue holds ordinary mails until it is their turn: one mail of each sender after the other, so
// that a sender with many delays the others by one at a time.
type queue struct {
	mu sync.Mutex
	// bySender has the mails of each sender, oldest first; turns the senders that have any, whose
	// turn is next first.
	bySender map[string][]jetstream.Msg
	turns    []string
	size     int
	// wentBack counts how often each mail went back, by its sequence.
	wentBack map[uint64]uint64
	// more has a value when a mail may be there, room when there may be room.
	more, room chan struct{}
}

func newQueue() *queue {
	return &queue{
		bySender: map[string][]jetstream.Msg{}, wentBack: map[uint64]uint64{},
		more: make(chan struct{}, 1), room: make(chan struct{}, 1),
	}
}

// senderOf returns the sender's token of a mail's subject. Mails from before there were senders
// have one together.
func senderOf(subject string) string {
	sender, _, _ := strings.Cut(strings.TrimPrefix(subject, ordinaryPrefix), ".")
	return sender
}

// offer takes a mail, unless as many are held as may be: of all, when full is true, or of the
// sender.
func (q *queue) offer(msg jetstream.Msg) (taken, full bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	sender := senderOf(msg.Subject())
	switch held := len(q.bySender[sender]); {
	case held >= maxHeldOfSender:
		return false, false
	case q.size >= maxHeld:
		return false, true
	case held == 0:
		q.turns = append(q.turns, sender)
	}
	q.bySender[sender] = append(q.bySender[sender], msg)
	q.size++
	signal(q.more)
	return true, false
}

// take returns the mail whose turn it is, nil when there is none.
func (q *queue) take() jetstream.Msg {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.turns) == 0 {
		return nil
	}
	sender := q.turns[0]
	mails := q.bySender[sender]
	q.turns = q.turns[1:]
	if len(mails) == 1 {
		delete(q.bySender, sender)
	} else {
		q.bySender[sender] = mails[1:]
		q.turns = append(q.turns, sender)
	}
	if q.size--; q.size > 0 {
		signal(q.more) // for another deliverer
	}
	signal(q.room)
	return mails[0]
}

// held returns all mails that are held.
func (q *queue) held() []jetstream.Msg {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := make([]jetstream.Msg, 0, q.size)
	for _, mails := range q.bySender {
		all = append(all, mails...)
	}
	return all
}

// goesBack returns for how long a mail goes back to the broker, and counts it.
func (q *queue) goesBack(sequence uint64) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.wentBack[sequence]++
	return pause(q.wentBack[sequence], holdBack, maxHoldBack)
}

// heldBack returns how often a mail went back: those are no failures.
func (q *queue) heldBack(sequence uint64) uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.wentBack[sequence]
}

// forget forgets a mail that is done.
func (q *queue) forget(sequence uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.wentBack, sequence)
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// hold puts a mail into the queue, or back to the broker when its sender has as many there as may
// be. It waits for room when there is none.
func (r *running) hold(ctx context.Context, msg jetstream.Msg) error {
	for {
		taken, full := false, false
		if ctx.Err() == nil {
			taken, full = r.queue.offer(msg)
		}
		switch {
		case ctx.Err() != nil:
			r.release(msg, 0)
			return ctx.Err()
		case taken:
			return nil
		case !full:
			mail, _ := read(msg) // what cannot be read has a sequence, or 0
			r.release(msg, r.queue.goesBack(mail.sequence))
			return nil
		}
		select {
		case <-r.queue.room:
		case <-time.After(progressEvery):
			r.progress(msg)
		case <-ctx.Done():
			r.release(msg, 0)
			return ctx.Err()
		}
	}
}

// work delivers what is in the queue.
func (r *running) work(ctx context.Context) error {
	for {
		if err := r.gate.pass(ctx); err != nil {
			return err
		}
		if msg := r.queue.take(); msg != nil {
			r.handle(msg)
			continue
		}
		select {
		case <-r.queue.more:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// keep tells the broker that mails are held, and gives back those that are when ctx ends.
func (r *running) keep(ctx context.Context) error {
	ticker := time.NewTicker(progressEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			for _, msg := range r.queue.held() {
				r.progress(msg)
			}
		case <-ctx.Done():
			for msg := r.queue.take(); msg != nil; msg = r.queue.take() {
				r.release(msg, 0)
			}
			return ctx.Err()
		}
	}
}

// progress tells the broker that a mail is in hand here.
func (r *running) progress(msg jetstream.Msg) {
	if err := msg.InProgress(); err != nil && !errors.Is(err, jetstream.ErrMsgAlreadyAckd) {
		r.cfg.Log.Warn("the broker cannot be told that a mail is in hand", "error", err)
	}
}
