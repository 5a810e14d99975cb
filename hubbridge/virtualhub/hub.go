package virtualhub

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"hubcloud/domain"
	"hubcloud/hubbridge/virtualhub/brokerconn"
	"hubcloud/hubbridge/virtualhub/controller"
	"hubcloud/hubbridge/virtualhub/device"
	"hubcloud/hubbridge/virtualhub/enrolment"
	"hubcloud/hubbridge/virtualhub/internal/notify"
)

// ErrRunning is returned by a second Run.
var ErrRunning = errors.New("the hub is running or has run")

// Hub is one hub. Make it with New. The end of Run closes it; Close closes a hub that never ran.
type Hub struct {
	cfg        Config
	id         domain.HubID
	controller *controller.Controller

	// Only the goroutine of runConnections uses these two.
	schedule enrolment.Schedule
	identity *enrolment.Identity // nil before the first enrolment

	// Both have a capacity of one and wake the sender and runDevices.
	sendWake, deviceWake chan struct{}

	workers workers // senders and requests

	mu          sync.Mutex
	running     bool
	offline     bool
	restarted   bool
	interrupted chan struct{}    // closed and replaced when offline or restarted changes
	current     *brokerconn.Conn // nil while not connected
	halfOpen    []*brokerconn.Conn
}

// New makes a hub, and restores the one in cfg.Dir if there is one.
func New(cfg Config) (*Hub, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	id, _ := domain.ParseSerial(cfg.Serial) // valid by Validate
	cfg.Logger = cfg.Logger.With("hub_id", string(id))
	identity, err := enrolment.Read(cfg.Dir, id)
	if err != nil {
		return nil, err
	}
	h := &Hub{
		cfg: cfg, id: id,
		schedule: enrolment.Schedule{Interval: cfg.EnrollEvery}, identity: identity,
		sendWake: make(chan struct{}, 1), deviceWake: make(chan struct{}, 1),
		interrupted: make(chan struct{}),
	}
	h.controller, err = controller.New(cfg.controllerConfig(id), h.wake)
	if err != nil {
		return nil, err
	}
	return h, nil
}

// wake is called by the controller when there may be something to send or to do for devices.
func (h *Hub) wake() {
	notify.Wake(h.sendWake)
	notify.Wake(h.deviceWake)
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

	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return h.runDevices(ctx) })
	group.Go(func() error { return h.runFaults(ctx) })
	group.Go(func() error { return h.runConnections(ctx) })
	err := group.Wait()
	h.workers.wait()
	for _, conn := range h.halfOpen {
		conn.Release()
	}
	return errors.Join(err, h.controller.Close())
}

// Close closes a hub that never ran or whose Run has returned.
func (h *Hub) Close() error { return h.controller.Close() }

// runDevices advances devices and windows.
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
		if due := h.controller.Advance(time.Now()); !due.IsZero() {
			timer.Reset(max(0, time.Until(due)))
		} else {
			timer.Stop()
		}
	}
}

// runFaults causes the periodic faults of the configuration.
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
					h.cfg.Logger.Warn("fault not simulated", "error", err)
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

// ID returns the hub's id.
func (h *Hub) ID() string { return string(h.id) }

// Status returns the hub's position in its log.
func (h *Hub) Status() Status { return h.controller.Status() }

// Acked returns the highest number of the present log that the cloud has acknowledged.
func (h *Hub) Acked() uint64 { return h.controller.Status().Acked }

// Connected reports whether there is a connection on which the cloud has acknowledged the hello.
func (h *Hub) Connected() bool { return h.controller.Status().Connected }

// WaitConnected waits until Connected returns true. Its error is the cause of ctx.
func (h *Hub) WaitConnected(ctx context.Context) error {
	return h.controller.Wait(ctx, h.Connected)
}

// WaitAcked waits until the cloud has acknowledged the event with number seq. Its error is the
// cause of ctx.
func (h *Hub) WaitAcked(ctx context.Context, seq uint64) error {
	return h.controller.Wait(ctx, func() bool { return h.Acked() >= seq })
}

// Emit numbers and stores all of events, or none if it returns an error, and sends them until they
// are acknowledged. It returns the number of the last event.
func (h *Hub) Emit(events ...Event) (last uint64, err error) {
	return h.controller.Emit(time.Now(), events)
}

// Device returns a device with all its channels; false if the hub has no device with the id.
func (h *Hub) Device(id int64) (device.View[device.FullChannel], bool) {
	return h.controller.Device(id)
}

// DeviceIDs returns the ids of the hub's devices in ascending order.
func (h *Hub) DeviceIDs() []int64 { return h.controller.DeviceIDs() }
