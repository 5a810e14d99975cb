package webhook

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// maxBytes is the most bytes of undelivered events in memory. A single event that is longer is read
// while no other waits.
const maxBytes = 64 << 20

const (
	// maxBatch is the most events of a request.
	maxBatch = 100
	// maxBatchBytes is the most bytes of events in a request of several.
	maxBatchBytes = 1 << 20
)

// Forwarder posts the events of a feed to a receiver.
type Forwarder struct {
	cfg      ForwarderConfig
	receiver *Receiver
	// slots limit the requests under way.
	slots chan struct{}
	skip  map[string]bool

	mu          sync.Mutex
	undelivered undelivered
	// hubs are those with undelivered events.
	hubs  map[string]*hub
	stats stats
	// saved is the last saved position. One goroutine at a time saves.
	saved string
	// room is signalled when an event was delivered.
	room chan struct{}
}

// hub is the undelivered events of a hub, in order. One goroutine posts them.
type hub struct {
	id     string
	events []*entry
	// failures counts the failed attempts for the first event.
	failures int
	last     error
}

// NewForwarder returns a forwarder. Its Run must be called once. The error is about the receiver's
// URL.
func NewForwarder(cfg ForwarderConfig) (*Forwarder, error) {
	cfg = cfg.withDefaults()
	receiver, err := NewReceiver(cfg.Receiver)
	if err != nil {
		return nil, err
	}
	f := &Forwarder{
		cfg: cfg, receiver: receiver, slots: make(chan struct{}, cfg.maxRequests),
		skip: map[string]bool{}, undelivered: undelivered{position: cfg.Position},
		hubs: map[string]*hub{}, room: make(chan struct{}, 1),
	}
	for _, cursor := range cfg.Skip {
		f.skip[cursor] = true
	}
	return f, nil
}

// Run forwards until ctx ends, which is no error, the receiver answers 410 (ErrGone), the
// feed ends with an error, or a position cannot be saved.
func (f *Forwarder) Run(ctx context.Context) error {
	// Without it, a crash before the first delivery would forget where a new reader began.
	if err := f.save(); err != nil {
		return err
	}
	g, running := errgroup.WithContext(ctx)
	sending, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(running, func() { time.AfterFunc(grace, cancel) })
	defer stop()
	g.Go(func() error { return f.read(running, sending, g) })
	g.Go(func() error { return f.saveRegularly(running) })
	g.Go(func() error { return f.reportRegularly(running) })
	err := g.Wait()
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = nil
	}
	f.reportEnd()
	return errors.Join(err, f.save())
}

// read hands the events of the feed to their hubs. It returns ctx's error or the feed's.
func (f *Forwarder) read(ctx, sending context.Context, g *errgroup.Group) error {
	start := func(h *hub) { g.Go(func() error { return f.deliver(ctx, sending, h) }) }
	for event, err := range f.cfg.Feed(ctx, f.cfg.Position, f.advance) {
		if err != nil {
			return err
		}
		if err := f.waitForRoom(ctx); err != nil {
			return err
		}
		f.accept(event, start)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return errors.New("the feed ended")
}

// advance records a position of the feed that is not an event's.
func (f *Forwarder) advance(position string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.undelivered.advance(position)
}

// accept queues an event, or skips it. start is called with a hub that had no events.
func (f *Forwarder) accept(event Event, start func(*hub)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	identity := event.HubID + "/" + event.Cursor
	if f.skip[event.Cursor] || f.skip[identity] {
		f.undelivered.advance(event.Position)
		f.stats.skipped++
		f.cfg.Logger.Warn(
			"event skipped", "hub_id", event.HubID, "cursor", event.Cursor, "type", event.Type,
		)
		return
	}
	e := &entry{
		identity: identity, hub: event.HubID, cursor: event.Cursor, body: event.Body,
		position: event.Position,
	}
	f.undelivered.add(e)
	h, busy := f.hubs[e.hub]
	if !busy {
		h = &hub{id: e.hub}
		f.hubs[e.hub] = h
	}
	h.events = append(h.events, e)
	if !busy {
		start(h)
	}
}

// waitForRoom waits while as much is undelivered as memory is allowed to hold.
func (f *Forwarder) waitForRoom(ctx context.Context) error {
	paused := false
	for {
		f.mu.Lock()
		full := f.undelivered.count >= f.cfg.maxEvents ||
			f.undelivered.count > 0 && f.undelivered.bytes >= maxBytes
		if full && !paused {
			f.reportPause()
		}
		f.mu.Unlock()
		if !full {
			if paused {
				f.cfg.Logger.Info("feed resumed")
			}
			return nil
		}
		paused = true
		select {
		case <-f.room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// deliver posts the events of a hub in order until there are none. ctx ends waits and sending ends
// requests under way.
func (f *Forwarder) deliver(ctx, sending context.Context, h *hub) error {
	for {
		events := f.next(h)
		if len(events) == 0 {
			return nil
		}
		if err := f.deliverOne(ctx, sending, h, events); err != nil {
			return err
		}
		f.delivered(h, len(events))
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// next returns the hub's events for the next request. If there are none, the hub is idle: the next
// event starts it again.
func (f *Forwarder) next(h *hub) []*entry {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(h.events) == 0 {
		delete(f.hubs, h.id)
		return nil
	}
	n, size := 1, len(h.events[0].body)
	for f.cfg.Batch && n < min(maxBatch, len(h.events)) {
		if size += len(h.events[n].body); size > maxBatchBytes {
			break
		}
		n++
	}
	return h.events[:n:n]
}

// delivered removes the first n events of a hub.
func (f *Forwarder) delivered(h *hub, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, e := range h.events[:n] {
		f.undelivered.done(e)
		h.events[i] = nil
	}
	h.events = h.events[n:]
	h.failures, h.last = 0, nil
	f.stats.delivered += n
	select {
	case f.room <- struct{}{}:
	default:
	}
}

// message returns the message for events of one hub.
func (f *Forwarder) message(events []*entry) Message {
	all := make([]Message, len(events))
	for i, e := range events {
		all[i] = Message{ID: e.identity, Body: e.body}
	}
	if !f.cfg.Batch {
		return all[0]
	}
	return Batch(events[0].hub, all)
}

// deliverOne posts events in one request, again and again, until the receiver has taken them.
func (f *Forwarder) deliverOne(
	ctx, sending context.Context, h *hub, events []*entry,
) error {
	m := f.message(events)
	for {
		select {
		case f.slots <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		_, err := f.receiver.Post(sending, m)
		<-f.slots
		switch {
		case err == nil:
			return nil
		case errors.Is(err, ErrGone):
			return fmt.Errorf("hub %s, cursor %s: %w", h.id, events[0].cursor, ErrGone)
		case sending.Err() != nil:
			return ctx.Err()
		}
		if !sleep(ctx, f.failed(h, events, err)) {
			return ctx.Err()
		}
	}
}

// save saves the position, if there is one.
func (f *Forwarder) save() error {
	f.mu.Lock()
	position := f.undelivered.position
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

func (f *Forwarder) saveRegularly(ctx context.Context) error {
	for sleep(ctx, saveEvery) {
		if err := f.save(); err != nil {
			return err
		}
	}
	return ctx.Err()
}
