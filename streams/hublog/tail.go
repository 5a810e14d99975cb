package hublog

import (
	"context"
	"sort"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
	"hubcloud/streams"
)

// tail is the end of one log, as all its readers in this process share it.
//
//	sequences:  … | ringFrom … end | … fed
//	              |   the ring     | announced, but not yet certain to be on disk
//	 read from the log
type tail struct {
	shard *shard
	hub   domain.HubID
	epoch domain.Epoch

	// opened is closed when the fields below mean something, or openErr says why not.
	opened  chan struct{}
	openErr error

	mu sync.Mutex
	// err ends the readers.
	err error
	sub *nats.Subscription
	// ring holds every event with a sequence from ringFrom to fed, the first shown of them for
	// readers to see. Readers keep slices of it, so what stands in it never changes: it grows at
	// one end and is cut at the other, and is copied when too much of it has been cut.
	ring     []domain.EncodedEvent
	ringFrom uint64
	shown    int
	cut      int
	bytes    int64
	// fed is the last sequence that came, without a gap since ringFrom; 0 before the first.
	fed uint64
	// safe is the last sequence that is certain to be on disk.
	safe uint64
	// end is the lesser of the two: how far readers see.
	end uint64
	// connected counts the reconnections of the feed up to when the first message behind end came.
	connected uint64
	// seenAt is an instant at which the stream ended at seen.
	seen   uint64
	seenAt time.Time

	// changed is closed when end moves on, or err is set; waited says that somebody waits for it.
	changed chan struct{}
	waited  bool

	readers int
	idle    time.Time
	// grouped are the readers that are in a Group; nil while there are none.
	grouped map[*Reader]struct{}

	// appends are those of this process that are under way.
	appends int
	// settling says that the broker is being asked whether what was announced is on disk.
	settling bool

	checks checks
}

func newTail(s *shard, hub domain.HubID, epoch domain.Epoch) *tail {
	return &tail{
		shard:   s,
		hub:     hub,
		epoch:   epoch,
		opened:  make(chan struct{}),
		changed: make(chan struct{}),
	}
}

// open subscribes to the feed and finds the log's end. Everything behind that comes through the
// feed: the broker deals with the subscription before it deals with the question.
func (t *tail) open(ctx context.Context) {
	err := t.subscribe()
	var b bounds
	now := t.shard.logs.cfg.Now()
	if err == nil {
		// A stale end is found out by the first check, and by the feed.
		b, err = t.shard.logs.bounds(ctx, t.hub, 0)
	}
	if err == nil && b.last > 0 {
		err = t.shard.logs.settle(ctx, t.hub)
	}
	if err == nil {
		t.begin(max(b.last, t.epoch.After), now)
	} else {
		t.openErr = err
		t.shard.end(t, err)
	}
	close(t.opened)
}

func (t *tail) subscribe() error {
	sub, err := t.shard.nc.ChanSubscribe(streams.FeedDestination(t.hub), t.shard.feed)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return sub.Unsubscribe()
	}
	t.sub = sub
	return nil
}

// begin sets the end as it was found at now, beside what the feed has brought since.
func (t *tail) begin(last uint64, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fed == 0 {
		t.ringFrom, t.fed = last+1, last
	}
	t.safe = max(t.safe, last)
	t.seen, t.seenAt = last, now
	t.advance()
	t.wakeLocked()
}

// feed takes the next message of the feed and says whether readers see more now. ErrLogEnded says
// that the log was begun anew.
func (t *tail) feed(m stored) (changed bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forsake()
	if t.err != nil || m.seq <= t.end || m.seq <= t.epoch.After {
		return false, nil
	}
	if m.event && m.epoch != t.epoch.At(m.seq) {
		return false, ErrLogEnded
	}
	switch {
	case m.seq <= t.fed:
		// Announced anew: the former announcement came to nothing.
		t.cutBehindEnd(m.seq)
	case m.seq > t.fed+1 && t.fed != 0:
		t.shard.logs.metrics.feedGaps.Inc()
	}
	if m.seq != t.fed+1 {
		t.restart(m.seq)
	}
	if t.fed == t.end {
		t.connected = t.shard.reconnections()
	}
	t.fed = m.seq
	// The broker deals with one append after the other, so what came before this one is on disk.
	t.safe = max(t.safe, m.seq-m.batchSeq)
	if m.event {
		t.push(m)
	}
	if m.batchCommit && m.seq > t.safe && t.appends == 0 {
		t.settleSoon()
	}
	return t.advance(), nil
}

// forsake forgets what was announced before the broker was lost and found again, and was not
// certain by then: a broker that ended in the midst of a batch may since have given the same
// sequences to other messages.
func (t *tail) forsake() {
	if t.fed > t.end && t.connected != t.shard.reconnections() {
		t.cutBehindEnd(t.end + 1)
	}
}

// cutBehindEnd forgets what was announced from the sequence from on, which readers have not seen.
func (t *tail) cutBehindEnd(from uint64) {
	keep := t.shown
	for keep < len(t.ring) && t.ring[keep].Seq < from {
		keep++
	}
	for _, e := range t.ring[keep:] {
		t.bytes -= eventBytes(e)
		t.shard.logs.rings.used.Add(-eventBytes(e))
	}
	t.ring = t.ring[:keep:keep]
	t.ringFrom = min(t.ringFrom, from)
	t.fed = from - 1
	t.safe = min(t.safe, t.fed)
}

// restart empties the ring; it goes on with the sequence from.
func (t *tail) restart(from uint64) {
	t.shard.logs.rings.used.Add(-t.bytes)
	t.ring, t.shown, t.cut, t.bytes = nil, 0, 0, 0
	t.ringFrom = from
}

func (t *tail) push(m stored) {
	logs := t.shard.logs
	e, err := m.encode()
	if err != nil {
		logs.cfg.Log.Error("unreadable event in a hub log", "hub_id", t.hub, "error", err)
		return
	}
	t.ring = append(t.ring, e)
	t.bytes += eventBytes(e)
	logs.rings.used.Add(eventBytes(e))
	t.trim()
}

// trim cuts the ring to its bounds.
func (t *tail) trim() {
	logs := t.shard.logs
	for len(t.ring) > logs.cfg.RingEvents || len(t.ring) > 0 && logs.rings.tooMuch(t.bytes) {
		oldest := t.ring[0]
		t.ringFrom = oldest.Seq + 1
		t.bytes -= eventBytes(oldest)
		logs.rings.used.Add(-eventBytes(oldest))
		t.ring = t.ring[1:]
		t.shown = max(t.shown-1, 0)
		t.cut++
	}
	if t.cut > len(t.ring)/2+16 {
		// What was cut off is held by the array underneath.
		t.ring = append(make([]domain.EncodedEvent, 0, len(t.ring)+len(t.ring)/2+16), t.ring...)
		t.cut = 0
	}
}

// advance moves the end on to what is certain and says whether it moved.
func (t *tail) advance() bool {
	end := min(t.fed, t.safe)
	if end <= t.end {
		return false
	}
	t.end = end
	for t.shown < len(t.ring) && t.ring[t.shown].Seq <= end {
		t.shown++
	}
	return true
}

func (t *tail) wake() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wakeLocked()
}

func (t *tail) wakeLocked() {
	if t.waited {
		close(t.changed)
		t.changed, t.waited = make(chan struct{}), false
	}
	for r := range t.grouped {
		r.group.mark(r)
	}
}

// confirm says that everything up to last is on disk.
func (t *tail) confirm(last uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forsake()
	t.safe = max(t.safe, last)
	if t.advance() {
		t.wakeLocked()
	}
}

func (t *tail) appendBegun() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.appends++
}

func (t *tail) appendEnded() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.appends--
	if t.appends == 0 && t.fed > t.safe {
		// Announced, but not by an append of ours that has succeeded.
		t.settleSoon()
	}
}

// settleSoon has the broker say when what it has announced so far is on disk.
func (t *tail) settleSoon() {
	if t.settling || t.err != nil {
		return
	}
	t.settling = true
	upTo := t.fed
	t.shard.logs.work(func(ctx context.Context) {
		err := t.shard.logs.settle(ctx, t.hub)
		t.mu.Lock()
		t.settling = false
		if err == nil && t.fed > upTo && t.appends == 0 {
			t.settleSoon()
		}
		t.mu.Unlock()
		if err == nil {
			t.confirm(upTo)
		}
		// Otherwise the next check asks again.
	})
}

// fail ends the tail and its readers. Only the first error counts.
func (t *tail) fail(err error) {
	t.mu.Lock()
	if t.err != nil {
		t.mu.Unlock()
		return
	}
	t.err = err
	t.restart(t.fed + 1)
	sub := t.sub
	t.sub = nil
	t.waited = true
	t.wakeLocked()
	t.mu.Unlock()
	if sub != nil {
		// It fails on a connection that is closed, and then there is nothing to take back.
		_ = sub.Unsubscribe()
	}
}

func (t *tail) attach() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.readers++
	t.shard.logs.metrics.readers.Inc()
}

func (t *tail) detach(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.readers--
	t.shard.logs.metrics.readers.Dec()
	if t.readers == 0 {
		t.idle = now
	}
}

// join has the tail wake the group of a reader.
func (t *tail) join(r *Reader) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.grouped == nil {
		t.grouped = map[*Reader]struct{}{}
	}
	t.grouped[r] = struct{}{}
}

// leave ends what join began.
func (t *tail) leave(r *Reader) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.grouped, r)
}

// idleSince reports whether the tail has had no reader since before.
func (t *tail) idleSince(before time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.readers == 0 && t.idle.Before(before)
}

// view is what a tail has behind a position.
type view struct {
	// events of the ring, at most as many as there is room for, and left the room behind them.
	events []domain.EncodedEvent
	left   room
	// next is the position behind them: no event lies between the last of them and next.
	next uint64
	// logTo, unless it is 0, says that the sequences up to it must be read from the log first.
	logTo uint64
}

// view gives events behind pos, as many as there is room for; first says that one is given whatever
// its size.
func (t *tail) view(pos uint64, left room, first bool) (view, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.err != nil:
		return view{}, t.err
	case pos >= t.end:
		return view{next: pos, left: left}, nil
	case pos+1 < t.ringFrom:
		return view{next: pos, left: left, logTo: min(t.ringFrom-1, t.end)}, nil
	}
	from := sort.Search(t.shown, func(i int) bool { return t.ring[i].Seq > pos })
	v := view{next: t.end}
	v.events, v.left = left.take(t.ring[from:t.shown], first)
	v.events = v.events[:len(v.events):len(v.events)]
	switch to := from + len(v.events); {
	case to == t.shown:
	case to > from:
		v.next = t.ring[to-1].Seq
	default:
		v.next = pos
	}
	return v, nil
}

// wait gives a channel that is closed when there is more behind pos, or the tail has ended.
func (t *tail) wait(pos uint64) <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil || pos < t.end {
		return closed
	}
	t.waited = true
	return t.changed
}

var closed = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// position gives the latest instant at which the stream was seen to end at a sequence, and that
// sequence.
func (t *tail) position() (seen uint64, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.seen, t.seenAt
}

// sees reports whether the log reaches up to seq, as far as readers see.
func (t *tail) sees(seq uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return seq <= t.end
}

// holds reports whether everything behind pos is in the ring.
func (t *tail) holds(pos uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return pos+1 >= t.ringFrom
}
