package hub

import (
	"context"
	"errors"
	"sync"
	"time"

	"hubcloud/domain"
)

// Hub is one hub. Make it with New. The end of Run closes it; Close closes a hub that never ran.
type Hub struct {
	cfg    Config
	id     domain.HubID
	engine *Engine

	// Only the goroutine of runConnections uses these two.
	schedule schedule
	identity *identity // nil before the first enrolment

	sendWake chan struct{} // wakes the sender; has a capacity of one
	workers  workers       // requests

	mu          sync.Mutex
	running     bool
	offline     bool
	restarted   bool
	interrupted chan struct{} // closed and replaced when offline or restarted changes
}

// New makes a hub, and restores the one in cfg.Dir if there is one.
func New(cfg Config) (*Hub, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	id, _ := domain.ParseSerial(cfg.Serial) // valid by Validate
	cfg.Logger = cfg.Logger.With("hub_id", string(id))
	identity, err := readIdentity(cfg.Dir, id)
	if err != nil {
		return nil, err
	}
	h := &Hub{
		cfg: cfg, id: id,
		schedule: schedule{interval: cfg.EnrollEvery}, identity: identity,
		sendWake: make(chan struct{}, 1), interrupted: make(chan struct{}),
	}
	h.engine, err = newEngine(cfg, id, func() { wake(h.sendWake) })
	if err != nil {
		return nil, err
	}
	if identity != nil {
		h.engine.setEnrolled()
	}
	return h, nil
}

// Run runs the hub until ctx ends, and then returns nil. It may be called once; a second call
// returns ErrRunning.
func (h *Hub) Run(ctx context.Context) error {
	h.mu.Lock()
	if h.running {
		h.mu.Unlock()
		return ErrRunning
	}
	h.running = true
	h.mu.Unlock()

	h.runConnections(ctx)
	h.workers.wait()
	return h.engine.close()
}

// Close closes a hub that never ran or whose Run has returned.
func (h *Hub) Close() error { return h.engine.close() }

// ID returns the hub's id.
func (h *Hub) ID() string { return string(h.id) }

// Engine returns the hub's engine, for changes, entries, the clock, faults and a reset.
func (h *Hub) Engine() *Engine { return h.engine }

// Status returns the hub's position in its log.
func (h *Hub) Status() Status { return h.engine.status() }

// wake sends to ch, which has a capacity of one, unless a value already waits in it.
func wake(ch chan<- struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// WaitConnected waits until there is a connection on which the cloud has acknowledged the hello.
// Its error is the cause of ctx.
func (h *Hub) WaitConnected(ctx context.Context) error {
	return h.engine.wait(ctx, func() bool { return h.Status().Connected })
}

// WaitAcked waits until the cloud has acknowledged the event with number seq. Its error is the
// cause of ctx.
func (h *Hub) WaitAcked(ctx context.Context, seq uint64) error {
	return h.engine.wait(ctx, func() bool { return h.Status().Acked >= seq })
}

// Emit numbers and stores all of events, or none if it returns an error, and sends them until they
// are acknowledged. It returns the number of the last event.
func (h *Hub) Emit(events ...Event) (last uint64, err error) {
	if len(events) == 0 {
		return 0, errors.New("events: must not be empty")
	}
	return h.engine.Commit(time.Now(), Change{Events: events})
}

// Offline disconnects the hub properly and keeps it disconnected while on.
func (h *Hub) Offline(on bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.offline = on
	h.interrupt()
}

// Restart makes the hub act as after a power cycle: it ends the connection, connects again without
// a wait, and may enrol again at once.
func (h *Hub) Restart() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.restarted = true
	h.interrupt()
}

// interrupt ends the session, with the lock held.
func (h *Hub) interrupt() {
	close(h.interrupted)
	h.interrupted = make(chan struct{})
}
