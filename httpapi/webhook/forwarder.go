package webhook

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// maxBytes is the most bytes of undelivered events in memory. A single event that is longer is
	// read while no other waits. eventOverhead is about how many bytes an event takes besides its
	// body.
	maxBytes, eventOverhead = 64 << 20, 256
	// maxBatch and maxBatchBytes are the most events, and bytes of events, of a request of several.
	maxBatch, maxBatchBytes = 100, 1 << 20
	// firstRepeat and maxRepeat bound the pause before a Forwarder posts an event again.
	firstRepeat, maxRepeat = 500 * time.Millisecond, time.Minute
)

// Event is an event of a feed.
type Event struct {
	HubID, Cursor, Type string
	// Position is the feed's position after the event; "" if the feed has none there.
	Position string
	// Body is the event as it is posted.
	Body []byte
}

// id returns what only this event has.
func (e *Event) id() string { return e.HubID + "/" + e.Cursor }

// Feed yields the events after a position. onPosition is called with positions that are not an
// event's. The first error ends the feed.
type Feed func(
	ctx context.Context, after string, onPosition func(position string),
) iter.Seq2[Event, error]

// ForwarderConfig configures a Forwarder. Receiver, Feed and Logger are required.
type ForwarderConfig struct {
	// Receiver is where the events are posted to. Its Transport defaults to one that keeps as many
	// connections as requests may be under way, and its Grace to 5 seconds.
	Receiver Config
	// Feed is where events come from.
	Feed Feed
	// Position is where to begin; "" is the oldest stored event.
	Position string
	// Batch posts up to 100 events of a hub in one request.
	Batch bool
	// Skip has cursors of events that are not posted.
	Skip []string
	// Save stores the position before which every event was delivered. It is called when the
	// position has changed, at most once in saveEvery, and at the end. A nil Save stores nothing.
	Save func(position string) error
	// Logger receives failed deliveries and pauses.
	Logger *slog.Logger

	// maxRequests is the most requests under way for all hubs. Defaults to 64.
	maxRequests int
	// maxEvents is the most undelivered events in memory. Defaults to 10,000.
	maxEvents int
}

// withDefaults returns a copy with defaults in place of zero values.
func (c ForwarderConfig) withDefaults() ForwarderConfig {
	c.maxRequests = cmp.Or(c.maxRequests, 64)
	c.maxEvents = cmp.Or(c.maxEvents, 10_000)
	if c.Receiver.Transport == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.MaxIdleConns, transport.MaxIdleConnsPerHost = c.maxRequests, c.maxRequests
		c.Receiver.Transport = transport
	}
	c.Receiver.Grace = cmp.Or(c.Receiver.Grace, 5*time.Second)
	return c
}

// Forwarder posts the events of a feed to a receiver.
type Forwarder struct {
	cfg      ForwarderConfig
	receiver *Receiver
	// slots limit the requests under way.
	slots chan struct{}
	// room is signalled when events were delivered.
	room chan struct{}

	mu sync.Mutex
	// waiting has the undelivered events, as *Event, in the order of the feed. The Position of each
	// is the feed's after it and the delivered ones that follow it. bytes is their size.
	waiting list.List
	bytes   int
	// hubs has the undelivered events by hub. A hub in it has a goroutine that posts them.
	hubs map[string][]*list.Element
	// position is the feed's before all undelivered events. delivered and skipped count.
	position           string
	delivered, skipped int
	// saved is the last saved position. One goroutine at a time saves.
	saved string
}

// NewForwarder returns a forwarder. Its Run must be called once. The error is about the receiver's
// URL.
func NewForwarder(cfg ForwarderConfig) (*Forwarder, error) {
	cfg = cfg.withDefaults()
	receiver, err := NewReceiver(cfg.Receiver)
	if err != nil {
		return nil, err
	}
	return &Forwarder{
		cfg: cfg, receiver: receiver, slots: make(chan struct{}, cfg.maxRequests),
		room: make(chan struct{}, 1), hubs: map[string][]*list.Element{}, position: cfg.Position,
	}, nil
}

// Run forwards until ctx ends, which is no error, the receiver answers 410 (ErrGone), the
// feed ends with an error, or a position cannot be saved.
func (f *Forwarder) Run(ctx context.Context) error {
	// Without it, a crash before the first delivery would forget where a new reader began.
	if err := f.save(); err != nil {
		return err
	}
	g, running := errgroup.WithContext(ctx)
	g.Go(func() error { return f.read(running, g) })
	g.Go(func() error {
		for sleep(running, saveEvery) {
			if err := f.save(); err != nil {
				return err
			}
		}
		return running.Err()
	})
	err := g.Wait()
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = nil
	}
	f.cfg.Logger.Info(
		"forwarding ended", "delivered", f.delivered, "skipped", f.skipped,
		"undelivered", f.waiting.Len(),
	)
	return errors.Join(err, f.save())
}

// save saves the position, if there is one.
func (f *Forwarder) save() error {
	f.mu.Lock()
	position := f.position
	f.mu.Unlock()
	if f.cfg.Save == nil || position == "" || position == f.saved {
		return nil
	}
	if err := f.cfg.Save(position); err != nil {
		return err
	}
	f.saved = position
	return nil
}

// read hands the events of the feed to the goroutines of their hubs. It returns ctx's error or the
// feed's.
func (f *Forwarder) read(ctx context.Context, g *errgroup.Group) error {
	for event, err := range f.cfg.Feed(ctx, f.cfg.Position, f.advance) {
		if err != nil {
			return err
		}
		if err := f.waitForRoom(ctx); err != nil {
			return err
		}
		if f.accept(&event) {
			g.Go(func() error { return f.deliver(ctx, event.HubID) })
		}
	}
	return cmp.Or(ctx.Err(), errors.New("the feed ended"))
}

// advance records that the feed is at a position, after all events that were accepted.
func (f *Forwarder) advance(position string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reach(f.waiting.Back(), position)
}

// reach records a position of the feed that is reached once an undelivered event and all before it
// are delivered; nil if none is. The caller holds mu.
func (f *Forwarder) reach(after *list.Element, position string) {
	switch {
	case position == "":
	case after == nil:
		f.position = position
	default:
		after.Value.(*Event).Position = position
	}
}

// accept queues an event, or skips it. It reports whether the hub needs a goroutine.
func (f *Forwarder) accept(event *Event) (idle bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if slices.Contains(f.cfg.Skip, event.Cursor) || slices.Contains(f.cfg.Skip, event.id()) {
		f.reach(f.waiting.Back(), event.Position)
		f.skipped++
		f.cfg.Logger.Warn(
			"event skipped", "hub_id", event.HubID, "cursor", event.Cursor, "type", event.Type,
		)
		return false
	}
	queue, busy := f.hubs[event.HubID]
	f.hubs[event.HubID] = append(queue, f.waiting.PushBack(event))
	f.bytes += len(event.Body) + eventOverhead
	return !busy
}

// waitForRoom waits while as much is undelivered as memory is allowed to hold.
func (f *Forwarder) waitForRoom(ctx context.Context) error {
	for paused := false; ; paused = true {
		f.mu.Lock()
		count, bytes, oldest := f.waiting.Len(), f.bytes, f.waiting.Front()
		f.mu.Unlock()
		if count == 0 || count < f.cfg.maxEvents && bytes < maxBytes {
			if paused {
				f.cfg.Logger.Info("feed resumed")
			}
			return nil
		}
		if event := oldest.Value.(*Event); !paused {
			f.cfg.Logger.Warn(
				"feed paused: the receiver is too far behind", "undelivered", count,
				"bytes", bytes, "oldest_hub_id", event.HubID, "oldest_cursor", event.Cursor,
			)
		}
		select {
		case <-f.room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// deliver posts the events of a hub in order until there are none.
func (f *Forwarder) deliver(ctx context.Context, hub string) error {
	for events := f.next(hub); len(events) > 0; events = f.next(hub) {
		if err := f.post(ctx, events); err != nil {
			return err
		}
		f.done(hub, events)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// next returns the hub's events for the next request. If there are none, the hub is idle: the next
// event needs a goroutine again.
func (f *Forwarder) next(hub string) []*list.Element {
	f.mu.Lock()
	defer f.mu.Unlock()
	queue := f.hubs[hub]
	if len(queue) == 0 {
		delete(f.hubs, hub)
		return nil
	}
	n, size := 1, len(queue[0].Value.(*Event).Body)
	for f.cfg.Batch && n < min(maxBatch, len(queue)) {
		if size += len(queue[n].Value.(*Event).Body); size > maxBatchBytes {
			break
		}
		n++
	}
	return queue[:n:n]
}

// done removes the first events of a hub, which were delivered.
func (f *Forwarder) done(hub string, events []*list.Element) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range events {
		before := e.Prev()
		event := f.waiting.Remove(e).(*Event)
		f.bytes -= len(event.Body) + eventOverhead
		f.reach(before, event.Position)
	}
	f.hubs[hub] = slices.Delete(f.hubs[hub], 0, len(events))
	f.delivered += len(events)
	select {
	case f.room <- struct{}{}:
	default:
	}
}

// post posts events of a hub in one request, again and again, until the receiver has taken them.
// Failures are logged after 1, 2, 4, 8, … attempts.
func (f *Forwarder) post(ctx context.Context, events []*list.Element) error {
	first, m := events[0].Value.(*Event), f.message(events)
	var failing time.Time
	for attempt := 1; ; attempt++ {
		select {
		case f.slots <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		_, err := f.receiver.Post(ctx, m)
		<-f.slots
		switch {
		case err == nil:
			return nil
		case errors.Is(err, ErrGone):
			return fmt.Errorf("hub %s, cursor %s: %w", first.HubID, first.Cursor, ErrGone)
		case ctx.Err() != nil:
			return ctx.Err()
		case attempt == 1:
			failing = time.Now()
		}
		pause := Pause(time.Since(failing), firstRepeat, maxRepeat, maxRetryAfter, err)
		if attempt&(attempt-1) == 0 {
			f.cfg.Logger.Warn(
				"event not delivered", "hub_id", first.HubID, "cursor", first.Cursor,
				"events", len(events), "attempt", attempt, "error", err, "wait", pause,
			)
		}
		if !sleep(ctx, pause) {
			return ctx.Err()
		}
	}
}

// message returns the message for events of one hub.
func (f *Forwarder) message(events []*list.Element) Message {
	all := make([]Message, len(events))
	for i, e := range events {
		event := e.Value.(*Event)
		all[i] = Message{ID: event.id(), Body: event.Body}
	}
	if !f.cfg.Batch {
		return all[0]
	}
	return Batch(events[0].Value.(*Event).HubID, all)
}

// sleep pauses for d. It returns false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
