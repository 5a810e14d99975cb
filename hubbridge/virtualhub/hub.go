package virtualhub

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"hubcloud/domain"
	"hubcloud/hubbridge/virtualhub/device"
)

// ErrRunning is returned by a second Run.
var ErrRunning = errors.New("the hub is running, or has run")

// Hub is one hub. Make it with New, and end it with the end of Run or with Close.
type Hub struct {
	cfg Config
	id  domain.HubID
	c   *controller

	admission admission // of the goroutine in Run
	identity  *identity // of the goroutine in Run

	// one place each: something to send, something to do for devices
	linkWake, deviceWake chan struct{}

	workers workers // requests under way, and senders of connections that have ended

	mu          sync.Mutex
	running     bool
	offline     bool
	restarted   bool
	interrupted chan struct{} // closed and replaced when offline or restarted changes
	current     *gate         // nil: no connection
	halfOpen    []*gate       // to be closed in the end
}

// New makes a hub, from Dir when that holds one.
func New(cfg Config) (*Hub, error) {
	cfg, id, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	known, err := readIdentity(cfg.Dir, id)
	if err != nil {
		return nil, err
	}
	c, err := newController(cfg, id)
	if err != nil {
		return nil, err
	}
	h := &Hub{
		cfg: cfg, id: id, c: c, admission: admission{every: cfg.EnrollEvery}, identity: known,
		linkWake: make(
			chan struct{}, 1,
		), deviceWake: make(chan struct{}, 1), interrupted: make(chan struct{}),
	}
	c.wake = func() { nudge(h.linkWake); nudge(h.deviceWake) }
	return h, nil
}

func nudge(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// Run runs the hub until ctx ends, and returns nil then. It can be called once; after it the hub is
// closed.
func (h *Hub) Run(ctx context.Context) error {
	h.mu.Lock()
	if h.running {
		h.mu.Unlock()
		return ErrRunning
	}
	h.running = true
	h.mu.Unlock()

	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return h.runDevices(ctx) })
	group.Go(func() error { return h.runFaults(ctx) })
	group.Go(func() error { return h.runLink(ctx) })
	err := group.Wait()
	h.workers.wait()
	for _, g := range h.halfOpen {
		g.release()
	}
	return errors.Join(err, h.c.close())
}

// Close closes a hub that was never run, or whose Run has returned.
func (h *Hub) Close() error { return h.c.close() }

// runDevices carries the devices on.
func (h *Hub) runDevices(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		case <-h.deviceWake:
		}
		if due := h.c.advance(time.Now()); !due.IsZero() {
			timer.Reset(max(0, time.Until(due)))
		} else {
			timer.Stop()
		}
	}
}

// runFaults makes the faults that come again and again.
func (h *Hub) runFaults(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	every := func(d device.Duration, do func() error) {
		if d == 0 {
			return
		}
		group.Go(func() error {
			ticker := time.NewTicker(time.Duration(d))
			defer ticker.Stop()
			for {
				select {
				case <-ctx.Done():
					return nil
				case <-ticker.C:
				}
				if err := do(); err != nil {
					h.cfg.Log.Warn("a fault cannot be made", "error", err)
				}
			}
		})
	}
	every(h.cfg.Faults.CutEvery, func() error { h.CutConnection(); return nil })
	every(h.cfg.Faults.LoseEvery, func() error { _, _, err := h.LoseEvents(10); return err })
	every(h.cfg.Faults.MalformEvery, func() error { _, err := h.EmitMalformed(); return err })
	every(h.cfg.Faults.ResetEvery, h.FactoryReset)
	return group.Wait()
}

// ID is the hub's ID.
func (h *Hub) ID() string { return string(h.id) }

// Status is where the hub stands now.
func (h *Hub) Status() Status { return h.c.status() }

// Acked is the highest number that the cloud has acknowledged in the hub's present log.
func (h *Hub) Acked() uint64 { return h.c.status().Acked }

// Connected says whether there is a connection on which the cloud has answered the hub's hello.
func (h *Hub) Connected() bool { return h.c.status().Connected }

// WaitConnected waits until Connected. Its error is the context's.
func (h *Hub) WaitConnected(ctx context.Context) error {
	return h.c.changes.wait(ctx, h.Connected)
}

// WaitAcked waits until the cloud has acknowledged the event with the given number. Its error is
// the context's.
func (h *Hub) WaitAcked(ctx context.Context, seq uint64) error {
	return h.c.changes.wait(ctx, func() bool { return h.Acked() >= seq })
}

// Emit numbers events and keeps them until they are acknowledged: all of them, or none and an
// error. It returns the number of the last.
func (h *Hub) Emit(events ...Event) (last uint64, err error) { return h.c.emit(time.Now(), events) }

// Device is a device with everything, as the hub answers it; false when there is no such one.
func (h *Hub) Device(id int64) (device.View[device.FullChannel], bool) {
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	d := h.c.device(id)
	if d == nil {
		return device.View[device.FullChannel]{}, false
	}
	return d.Full(), true
}

// DeviceIDs are the ids of the hub's devices, rising.
func (h *Hub) DeviceIDs() []int64 {
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	ids := make([]int64, len(h.c.devices))
	for i, d := range h.c.devices {
		ids[i] = d.ID
	}
	return ids
}

// CutConnection cuts the hub's connection, if there is one, without a word. The hub connects again.
func (h *Hub) CutConnection() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.current != nil {
		h.current.cut()
	}
}

// HalfOpen makes the connection half-open: the hub neither hears nor is heard, and nobody is told.
// The hub finds out by its keep-alive, and connects again.
func (h *Hub) HalfOpen() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.current != nil && !h.current.frozen() {
		h.current.freeze()
		h.halfOpen = append(h.halfOpen, h.current)
	}
}

// Offline disconnects the hub in good order and keeps it away, or lets it come back.
func (h *Hub) Offline(on bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.offline = on
	h.interruptLocked()
}

// Restart switches the hub off and on: the connection is cut, windows are closed, requests under
// way get no answer. What the hub has on its disk it still has; in memory that is taken to be so.
func (h *Hub) Restart() {
	h.c.restart(time.Now())
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.current != nil {
		h.current.cut()
	}
	h.restarted = true
	h.interruptLocked()
}

func (h *Hub) interruptLocked() {
	close(h.interrupted)
	h.interrupted = make(chan struct{})
}

// FactoryReset makes the hub what it was when it was made, but for its certificate: a new log, the
// first devices, no command ids. It restarts.
func (h *Hub) FactoryReset() error {
	if err := h.c.reset(time.Now()); err != nil {
		return err
	}
	h.Restart()
	return nil
}
