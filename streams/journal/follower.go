package journal

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

const (
	// checkEvery is how often a follower asks for the journal's end: the feed loses commits without
	// a trace if none comes after them.
	checkEvery = 2 * time.Second
	// queueBytes bounds the commits that wait for deliver. Further ones are read from the journal.
	queueBytes = 32 << 20
	// A batch of commits from the journal has at most readMessages, or readBytes and one commit.
	readMessages = 256
	readBytes    = 4 << 20
	readTimeout  = time.Second
	// collectTime is how long an offered follower collects commits: on one node a commit often has a
	// single event, and each delivery wakes several goroutines.
	collectTime = 20 * time.Millisecond
)

// Follower delivers the commits of one group's journal in order, from one sequence on, each once.
// Every process follows every journal.
type Follower struct {
	journal *Journal
	group   int
	deliver func([]Commit)
	missing func(from, to uint64)
	// lostTries counts how often the commit behind position was missing.
	lostTries int
	// offered reports that the follower of its group in this process passes its commits on.
	offered bool
	// positionGauge and endGauge show position and known; nil for an offered follower.
	positionGauge, endGauge prometheus.Gauge
	// passed is the last commit that the owner has read before.
	passed uint64

	// wake has an entry when there is something to deliver, check when the end of the journal is
	// asked for.
	wake, check chan struct{}
	// stopped is closed when Run returns.
	stopped chan struct{}

	// delivering is held by whoever calls deliver. running guards it: Run has not returned.
	delivering sync.Mutex
	running    bool

	mu sync.Mutex
	// position is the sequence of the last commit that was delivered or has expired.
	position uint64
	// known is the highest sequence that is known to be stored.
	known uint64
	// queue has commits from the feed and from Offer.
	queue      []queued
	queueBytes int
	// asking has those that wait for an answer to the next request for the journal's end, waiting
	// those that wait for their target to be delivered.
	asking, waiting []*waiter
}

// queued is a commit that waits to be delivered: as stored, or as the writer returned it.
type queued struct {
	seq    uint64
	stored []byte
	commit *Commit
}

// waiter is what calls of Sync wait for that share a request. done is closed once position has
// reached target.
type waiter struct {
	target uint64
	done   chan struct{}
}

// NewFollower returns a follower that delivers the commits from a sequence on, which must be at
// least 1.
//
// Run calls deliver with one or more commits that follow the commits of the former call. It calls
// missing with the range of commits that have expired before they could be delivered, or that were
// damaged on the disk; the next ones to deliver are those behind it. Calls of both never overlap,
// and the journal is not followed further before they return. deliver may keep the commits but must
// not change them.
func (j *Journal) NewFollower(
	group int, from uint64, deliver func([]Commit), missing func(from, to uint64),
) *Follower {
	return &Follower{
		journal: j, group: group, deliver: deliver, missing: missing,
		wake: make(chan struct{}, 1), check: make(chan struct{}, 1), stopped: make(chan struct{}),
		position: from - 1,
	}
}

// NewOffered is NewFollower for one that may be later than others, by collectTime. If the journal is
// open in this process, it gets the commits from the process's own follower, which costs the broker
// nothing and does not wait for it.
func (j *Journal) NewOffered(
	group int, from uint64, deliver func([]Commit), missing func(from, to uint64),
) *Follower {
	f := j.NewFollower(group, from, deliver, missing)
	f.offered = j.groups != nil
	return f
}

// Passed is called before Run by an owner that has read the commits up to a sequence already:
// nothing is lost if they have expired.
func (f *Follower) Passed(seq uint64) { f.passed = seq }

// Position returns the sequence of the last commit that was delivered or reported as missing.
func (f *Follower) Position() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.position
}

// Offer passes a commit that a writer of this process has stored, so that it is delivered without
// waiting for the broker to publish it. Offer never blocks.
func (f *Follower) Offer(c Commit) {
	size := 0
	for i := range c.Records {
		size += c.Records[i].Size()
	}
	f.push(queued{seq: c.Seq, commit: &c}, size)
}

// Deliver is Offer followed by Await, without another goroutine if none is delivering.
func (f *Follower) Deliver(ctx context.Context, c Commit) error {
	if f.delivering.TryLock() {
		next := f.running && f.Position()+1 == c.Seq
		if next {
			f.pass([]Commit{c})
		}
		f.delivering.Unlock()
		if next {
			return nil
		}
	}
	f.Offer(c)
	return f.Await(ctx, c.Seq)
}

// push adds a stored commit to the queue if there is space.
func (f *Follower) push(q queued, size int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if q.seq <= f.position {
		return
	}
	f.known = max(f.known, q.seq)
	if f.queueBytes+size <= queueBytes {
		f.queue = append(f.queue, q)
		f.queueBytes += size
	}
	notify(f.wake)
}

// notify makes sure that a channel with space for one entry has one.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Sync returns once everything that was stored in the journal before the call has been delivered.
// Calls at the same time share a request to the journal's leader. A leader that was deposed and cut
// off less than jsapi.LeaderActive ago may not know the commits of its successor. The error is that
// of ctx, or ErrStopped.
func (f *Follower) Sync(ctx context.Context) error {
	f.mu.Lock()
	if len(f.asking) == 0 {
		f.asking = append(f.asking, &waiter{done: make(chan struct{})})
	}
	w := f.asking[len(f.asking)-1]
	f.mu.Unlock()
	notify(f.check)
	return f.wait(ctx, w)
}

// Await returns once the commit with a sequence, which must be stored, has been delivered or
// reported as missing. The error is ctx's, or ErrStopped.
func (f *Follower) Await(ctx context.Context, seq uint64) error {
	w := &waiter{target: seq, done: make(chan struct{})}
	f.mu.Lock()
	if f.position >= seq {
		f.mu.Unlock()
		return nil
	}
	f.known = max(f.known, seq)
	f.waiting = append(f.waiting, w)
	f.mu.Unlock()
	notify(f.wake)
	return f.wait(ctx, w)
}

func (f *Follower) wait(ctx context.Context, w *waiter) error {
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-f.stopped:
		return groupError(f.group, ErrStopped)
	}
}

// Run follows the journal until ctx ends. It waits while the broker is unreachable. It must be
// called once. The error is ctx's, ErrUnreadable, ErrBeyondEnd, or nats.ErrConnectionClosed.
func (f *Follower) Run(ctx context.Context) error {
	defer close(f.stopped)
	if m := f.journal.metrics; !f.offered {
		f.positionGauge = m.position.WithLabelValues(label(f.group))
		f.endGauge = m.end.WithLabelValues(label(f.group))
	}
	f.setRunning(true)
	defer f.setRunning(false)
	switch {
	case f.offered:
		defer f.journal.groups[f.group].attach(f)()
	case !f.journal.cfg.Sole:
		// The subscription is made before the first request for the end, so that every later commit
		// is in the feed or known.
		feed, err := f.journal.cfg.Conn.Subscribe(streams.JournalFeed(f.group), func(msg *nats.Msg) {
			if seq, err := jsapi.Sequence(msg); err == nil {
				f.push(queued{seq: seq, stored: msg.Data}, len(msg.Data))
			}
		})
		if err != nil {
			return groupError(f.group, fmt.Errorf("follow: %w", err))
		}
		defer streams.Unsubscribe(feed)
	}
	getter, err := f.journal.api.NewBatchGetter(readMessages)
	if err != nil {
		return groupError(f.group, fmt.Errorf("follow: %w", err))
	}
	defer getter.Close()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return f.runChecks(ctx) })
	group.Go(func() error { return f.runDelivery(ctx, getter) })
	if err := group.Wait(); err != nil {
		return groupError(f.group, fmt.Errorf("follow: %w", err))
	}
	return nil
}

func (f *Follower) setRunning(running bool) {
	f.delivering.Lock()
	defer f.delivering.Unlock()
	f.running = running
}

// runDelivery delivers what is queued, and reads what is known to be stored but is not queued.
func (f *Follower) runDelivery(ctx context.Context, getter *jsapi.BatchGetter) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-f.wake:
		}
		if f.offered && !streams.Sleep(ctx, collectTime) {
			return ctx.Err()
		}
		if err := f.deliverKnown(ctx, getter); err != nil {
			return err
		}
	}
}

func (f *Follower) deliverKnown(ctx context.Context, getter *jsapi.BatchGetter) error {
	f.delivering.Lock()
	defer f.delivering.Unlock()
	queue, known := f.take()
	if err := f.deliverQueue(ctx, getter, queue); err != nil {
		return err
	}
	return f.read(ctx, getter, known)
}

// take empties the queue.
func (f *Follower) take() (queue []queued, known uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	queue, known = f.queue, f.known
	f.queue, f.queueBytes = nil, 0
	return queue, known
}

// deliverQueue delivers the commits of a queue in as few calls as possible. It reads those between
// that are not in the queue.
func (f *Follower) deliverQueue(
	ctx context.Context, getter *jsapi.BatchGetter, queue []queued,
) error {
	var ready []Commit
	next := f.Position() + 1
	for i := range queue {
		q := &queue[i]
		if q.seq < next {
			continue // from the feed and from Offer
		}
		if q.seq > next {
			f.pass(ready)
			ready = nil
			f.journal.metrics.feedGaps.Inc()
			if err := f.read(ctx, getter, q.seq-1); err != nil {
				return err
			}
			if position := f.Position(); position >= q.seq { // q has expired
				next = position + 1
				continue
			}
		}
		c := q.commit
		if c == nil {
			stored, err := unmarshalAt(q.seq, q.stored)
			if err != nil {
				return err
			}
			c = &stored
		}
		ready = append(ready, *c)
		next = q.seq + 1
	}
	f.pass(ready)
	return nil
}

// pass delivers commits, which must follow those delivered before.
func (f *Follower) pass(commits []Commit) {
	if len(commits) == 0 {
		return
	}
	f.deliver(commits)
	if !f.offered {
		f.journal.metrics.delivered.Add(float64(len(commits)))
	}
	f.advance(commits[len(commits)-1].Seq)
}

// advance moves the position and ends the calls of Sync that waited for it.
func (f *Follower) advance(position uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.position = position
	f.known = max(f.known, position)
	f.endWaits()
	f.setGauges()
}

// endWaits ends the calls of Sync and Await that the position has reached. It must be called with
// f.mu held.
func (f *Follower) endWaits() {
	f.waiting = slices.DeleteFunc(f.waiting, func(w *waiter) bool {
		if w.target > f.position {
			return false
		}
		close(w.done)
		return true
	})
}

// setGauges must be called with f.mu held.
func (f *Follower) setGauges() {
	if f.positionGauge != nil {
		f.positionGauge.Set(float64(f.position))
		f.endGauge.Set(float64(f.known))
	}
}
