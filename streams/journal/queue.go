package journal

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

const (
	// maxQueuedBytes bounds the records that wait for a commit; further appends block.
	maxQueuedBytes = 32 << 20
	// busyLinger is the pause of a writer in a cluster after a commit with at least busyAppends
	// appends. Each commit costs messages and a sync on three servers, so a writer that is busy
	// collects more appends for the next one: three servers stored 9,000 events/s instead of 7,000.
	busyLinger  = 20 * time.Millisecond
	busyAppends = 4
	// busyBytes are enough appends for a commit without a pause.
	busyBytes = maxBatchBytes / 4
	// maxBatchBytes bounds the records of one commit.
	maxBatchBytes = MaxCommitBytes - CommitOverhead
)

// errStopped means that nothing was stored because the writer has stopped: another replica serves
// the group now, or none.
var errStopped = errors.New("the writer has stopped")

// queue collects what is appended to the logs of one group, and commits it, until another process
// has opened a writer.
type queue struct {
	journal *Journal
	group   *group
	lease   Lease
	out     *Writer
	// loads joins the concurrent reads of one log's end.
	loads singleflight.Group

	mu sync.Mutex
	// ends has the ends of the logs that were appended to since the writer started.
	ends map[domain.HubID]*logEnd
	// queue holds the appends that wait for a commit, in order. wake has a value once it is not
	// empty, and room is closed and replaced when queued falls.
	queue  []*request
	queued int
	room   chan struct{}
	closed bool
	wake   chan struct{}
	// fenced is closed once another writer has committed.
	fenced chan struct{}
	fence  func()

	// committing is when the commit began that is under way, or whose outcome is unknown; nil
	// without one.
	committing atomic.Pointer[time.Time]

	// lastTime is the time of the last record. Only run uses it.
	lastTime time.Time
}

// logEnd is the end of a hub's log: the sequence of the last record, and of the last event, 0
// if there was none. expired reports that the last event is known to have expired. Records of the
// epoch ended are rejected.
type logEnd struct {
	last, event uint64
	expired     bool
	ended       domain.EpochID
}

// endsWith reports whether the last event is the one with a sequence. 0 stands for no event or one
// that has expired.
func (e logEnd) endsWith(event uint64) bool {
	return event == e.event || event == 0 && e.expired
}

// request is one append.
type request struct {
	hub domain.HubID
	// expected is the end that the log must have.
	expected uint64
	records  []Record
	bytes    int
	// taken is set by whoever comes first: the loop that commits the request, or the caller that
	// withdraws it.
	taken atomic.Bool
	done  chan result
}

// fits reports whether a log with that end is the one that the request expects: its last event, or
// its last record if the request has states.
func (req *request) fits(end logEnd) bool {
	switch {
	case req.expected == AnyEnd:
		return true
	case req.records[0].Kind == KindState:
		return req.expected == end.last
	}
	return end.endsWith(req.expected)
}

// result is the outcome of a request.
type result struct {
	last uint64
	err  error
}

func newQueue(j *Journal, g *group, out *Writer, lease Lease) *queue {
	w := &queue{
		journal: j, group: g, lease: lease, out: out,
		ends: map[domain.HubID]*logEnd{}, room: make(chan struct{}), wake: make(chan struct{}, 1),
		fenced: make(chan struct{}), lastTime: out.LastTime(),
	}
	w.fence = sync.OnceFunc(func() { close(w.fenced) })
	return w
}

// append stores a request's records and returns the sequence of the last one.
func (w *queue) append(ctx context.Context, req *request) (last uint64, err error) {
	if len(req.records) == 0 {
		return 0, fmt.Errorf("hub log of %s: append: no records", req.hub)
	}
	ended, err := w.loadEnd(ctx, req)
	if err != nil {
		return 0, err
	}
	for i := range req.records {
		rec := &req.records[i]
		if !ended.IsZero() && rec.EpochID == ended {
			return 0, fmt.Errorf(
				"%w: epoch %s of the log of %s has ended", jsapi.ErrConflict, rec.EpochID, req.hub,
			)
		}
		rec.Hub = req.hub
		// An invalid record would fail the commit that it shares with other hubs.
		if err := rec.validateContent(); err != nil {
			return 0, fmt.Errorf("hub log of %s: append: %w", req.hub, err)
		}
		req.bytes += rec.Size()
	}
	req.done = make(chan result, 1)
	if err := w.enqueue(ctx, req); err != nil {
		return 0, err
	}
	select {
	case res := <-req.done:
		return res.last, res.err
	case <-ctx.Done():
	}
	if req.taken.CompareAndSwap(false, true) {
		return 0, ctx.Err()
	}
	// The commit ends soon, and an answer is better than an unknown outcome.
	res := <-req.done
	return res.last, res.err
}

// enqueue adds a request to the queue, once the queue has room.
func (w *queue) enqueue(ctx context.Context, req *request) error {
	for {
		w.mu.Lock()
		if w.closed {
			w.mu.Unlock()
			return errStopped
		}
		if w.queued == 0 || w.queued+req.bytes <= maxQueuedBytes {
			w.queue = append(w.queue, req)
			w.queued += req.bytes
			w.mu.Unlock()
			select {
			case w.wake <- struct{}{}:
			default:
			}
			return nil
		}
		room := w.room
		w.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// run commits what is appended until ctx ends or a commit fails for good. Then all requests that
// wait fail with errStopped.
func (w *queue) run(ctx context.Context) (err error) {
	defer w.close()
	for {
		select {
		case <-w.wake:
		case <-w.fenced:
			return ErrFenced
		case <-ctx.Done():
			return nil
		}
		for {
			batch := w.take()
			if len(batch) == 0 {
				break
			}
			if err := w.commit(ctx, batch); err != nil {
				return err
			}
			if len(batch) >= busyAppends && w.journal.isReplicated() && w.queuedBytes() < busyBytes {
				// A writer that is fenced meanwhile finds out by its next commit.
				streams.Sleep(ctx, busyLinger)
			}
		}
	}
}

// take removes the requests of the next commit from the queue.
func (w *queue) take() (batch []*request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	bytes, records, n := 0, 0, 0
	for _, req := range w.queue {
		if len(batch) > 0 && (bytes+req.bytes > maxBatchBytes ||
			records+len(req.records) > MaxRecords) {
			break
		}
		n++
		w.queued -= req.bytes
		if !req.taken.CompareAndSwap(false, true) {
			continue // withdrawn
		}
		batch = append(batch, req)
		bytes += req.bytes
		records += len(req.records)
	}
	clear(w.queue[:n])
	if w.queue = w.queue[n:]; len(w.queue) == 0 {
		w.queue = nil
	}
	if n > 0 {
		close(w.room)
		w.room = make(chan struct{})
	}
	return batch
}

// queuedBytes returns the size of the records that wait for a commit.
func (w *queue) queuedBytes() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.queued
}

// commit stores a batch and answers its requests. It returns an error if the writer must stop.
func (w *queue) commit(ctx context.Context, batch []*request) error {
	if ctx.Err() != nil && !w.lease.Held() {
		answer(batch, errStopped)
		return errStopped
	}
	accepted, records, ends := w.plan(batch)
	if len(accepted) == 0 {
		return nil
	}
	began := time.Now()
	w.committing.Store(&began)
	// A commit that has begun is carried to its end, within the journal's own patience: without the
	// outcome nothing can follow. Once the lease is lost nothing follows in any case, and the next
	// holder waits.
	committing, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	defer context.AfterFunc(ctx, func() {
		if !w.lease.Held() {
			giveUp()
		}
	})()
	c, err := w.out.Commit(committing, records, w.group.index.Tip)
	switch {
	case errors.Is(err, ErrFenced):
		answer(accepted, errStopped)
		return err
	case errors.Is(err, ErrOutcomeUnknown):
		answer(accepted, err)
		return err
	case err != nil:
		w.committing.Store(nil)
		answer(accepted, err)
		return nil
	}
	w.lastTime = c.Time
	w.mu.Lock()
	for hub, end := range ends {
		*w.ends[hub] = end
	}
	w.mu.Unlock()
	// The readers of this process see the commit before the callers learn of it, so that a page
	// that a caller asks for next has it. The next commit is linked to it through the index.
	err = w.group.follower.Deliver(ctx, c)
	if err == nil {
		w.committing.Store(nil)
	}
	for _, req := range accepted {
		req.done <- result{last: req.records[len(req.records)-1].Seq}
	}
	return err
}

// plan sets the sequences and times of the records of a batch. It answers the requests whose
// condition does not hold, and returns the others with their records and the ends of the logs
// after them.
func (w *queue) plan(
	batch []*request,
) (accepted []*request, records []Record, ends map[domain.HubID]logEnd) {
	now := w.journal.cfg.Now().UTC()
	ends = make(map[domain.HubID]logEnd, len(batch))
	at := w.lastTime
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, req := range batch {
		end, ok := ends[req.hub]
		if !ok {
			end = *w.ends[req.hub]
		}
		if !req.fits(end) {
			req.done <- result{err: fmt.Errorf(
				"%w: the log of %s ends with %d and its last event is %d, not %d",
				jsapi.ErrConflict, req.hub, end.last, end.event, req.expected,
			)}
			continue
		}
		for i := range req.records {
			rec := &req.records[i]
			if at = at.Add(1); now.After(at) {
				at = now
			}
			end.last++
			rec.Seq, rec.Time = end.last, at
			if rec.Kind.IsEvent() {
				end.event, end.expired = rec.Seq, false
			}
			records = append(records, *rec)
		}
		ends[req.hub] = end
		accepted = append(accepted, req)
	}
	return accepted, records, ends
}

// answer answers every request of a batch with an error.
func answer(batch []*request, err error) {
	for _, req := range batch {
		req.done <- result{err: err}
	}
}

// close rejects the requests that wait and all later ones.
func (w *queue) close() {
	w.mu.Lock()
	w.closed = true
	rest := w.queue
	w.queue, w.queued = nil, 0
	close(w.room)
	w.room = make(chan struct{})
	w.mu.Unlock()
	for _, req := range rest {
		if req.taken.CompareAndSwap(false, true) {
			req.done <- result{err: errStopped}
		}
	}
}
