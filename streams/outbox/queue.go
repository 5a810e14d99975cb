package outbox

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/streams"
)

const (
	// maxQueued is how many mails of a class a process keeps in memory until a deliverer is free,
	// and maxQueuedPerSender how many of one sender. Further mails of the sender are deferred, so
	// that the broker hands out mails of other senders.
	maxQueued          = 512
	maxQueuedPerSender = 64
	// firstDeferral is the pause of a mail that is deferred for the first time. Each further
	// deferral doubles it, up to maxDeferral: the broker hands out deferred mails before new ones,
	// and must not hand out those alone.
	firstDeferral = 5 * time.Second
	maxDeferral   = 2 * time.Minute
)

// queue is the memory queue of ordinary mails, or of alarms. It serves senders in turn, one mail
// each, so that a sender with many mails delays the others by one mail at a time.
type queue struct {
	mu sync.Mutex
	// bySender has the mails of each sender, oldest first. senders are those with mails, the next
	// one first.
	bySender map[string][]jetstream.Msg
	senders  []string
	size     int
	// deferrals counts how often each mail was deferred, by sequence.
	deferrals map[uint64]uint64
	// added is signaled when there may be a mail, removed when there may be space.
	added, removed chan struct{}
}

func newQueue() *queue {
	return &queue{
		bySender: map[string][]jetstream.Msg{}, deferrals: map[uint64]uint64{},
		added: make(chan struct{}, 1), removed: make(chan struct{}, 1),
	}
}

// senderOf returns the sender's token in a mail's subject.
func senderOf(subject string) string {
	subject = strings.TrimPrefix(strings.TrimPrefix(subject, ordinaryPrefix), alarmPrefix)
	sender, _, _ := strings.Cut(subject, ".")
	return sender
}

// addResult is the outcome of queue.add.
type addResult int

const (
	added addResult = iota
	senderFull
	queueFull
)

// add adds a mail, unless the queue or the sender has reached its limit.
func (q *queue) add(msg jetstream.Msg) addResult {
	q.mu.Lock()
	defer q.mu.Unlock()
	sender := senderOf(msg.Subject())
	switch n := len(q.bySender[sender]); {
	case n >= maxQueuedPerSender:
		return senderFull
	case q.size >= maxQueued:
		return queueFull
	case n == 0:
		q.senders = append(q.senders, sender)
	}
	q.bySender[sender] = append(q.bySender[sender], msg)
	q.size++
	signal(q.added)
	return added
}

// next removes and returns the next mail; nil when the queue is empty.
func (q *queue) next() jetstream.Msg {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.senders) == 0 {
		return nil
	}
	sender := q.senders[0]
	mails := q.bySender[sender]
	q.senders = q.senders[1:]
	if len(mails) == 1 {
		delete(q.bySender, sender)
	} else {
		q.bySender[sender] = mails[1:]
		q.senders = append(q.senders, sender)
	}
	if q.size--; q.size > 0 {
		signal(q.added) // for another deliverer
	}
	signal(q.removed)
	return mails[0]
}

// all returns the queued mails.
func (q *queue) all() []jetstream.Msg {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := make([]jetstream.Msg, 0, q.size)
	for _, mails := range q.bySender {
		all = append(all, mails...)
	}
	return all
}

// countDeferral counts a deferral of a mail and returns its pause.
func (q *queue) countDeferral(sequence uint64) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.deferrals[sequence]++
	return backoff(q.deferrals[sequence], firstDeferral, maxDeferral)
}

// deferralsOf returns how often a mail was deferred. The broker counts deferrals as tries.
func (q *queue) deferralsOf(sequence uint64) uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.deferrals[sequence]
}

// forget removes the deferrals of a mail that is done.
func (q *queue) forget(sequence uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.deferrals, sequence)
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// enqueue adds a mail to the memory queue, or defers it when its sender has reached its limit. It
// waits while the queue is full.
func (r *runner) enqueue(ctx context.Context, msg jetstream.Msg) error {
	queue := r.queueOf(msg)
	for {
		if ctx.Err() != nil {
			r.release(msg, 0)
			return ctx.Err()
		}
		switch queue.add(msg) {
		case added:
			return nil
		case senderFull:
			mail, _ := parseMail(msg) // an unreadable mail has a sequence too, or 0
			r.release(msg, queue.countDeferral(mail.sequence))
			return nil
		case queueFull:
		}
		select {
		case <-queue.removed:
		case <-time.After(progressInterval):
			r.reportProgress(msg)
		case <-ctx.Done():
		}
	}
}

// deliverQueued delivers mails from a memory queue until ctx ends.
func (r *runner) deliverQueued(ctx, deliveries context.Context, queue *queue) error {
	for {
		if err := r.server.wait(ctx); err != nil {
			return err
		}
		if msg := queue.next(); msg != nil {
			r.handle(deliveries, msg)
			continue
		}
		select {
		case <-queue.added:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// keepQueued keeps the broker from handing out the mails of a memory queue again. When ctx ends it
// returns them to the broker.
func (r *runner) keepQueued(ctx context.Context, queue *queue) error {
	for streams.Sleep(ctx, progressInterval) {
		for _, msg := range queue.all() {
			r.reportProgress(msg)
		}
	}
	for msg := queue.next(); msg != nil; msg = queue.next() {
		r.release(msg, 0)
	}
	return ctx.Err()
}

// reportProgress restarts the broker's ackWait for a mail.
func (r *runner) reportProgress(msg jetstream.Msg) {
	if err := msg.InProgress(); err != nil && !errors.Is(err, jetstream.ErrMsgAlreadyAckd) {
		r.cfg.Logger.Warn("mail progress not reported to the broker", "error", err)
	}
}
