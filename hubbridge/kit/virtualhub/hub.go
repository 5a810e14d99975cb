package virtualhub

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"hubcloud/domain"
	"hubcloud/hubbridge/kit/device"
	"hubcloud/hubbridge/kit/hub"
)

// ErrRunning is returned by a second Run.
var ErrRunning = hub.ErrRunning

// Hub is one hub. Make it with New. The end of Run closes it; Close closes a hub that never ran.
type Hub struct {
	cfg        Config
	hub        *hub.Hub
	controller *controller
	network    faultyNetwork
	deviceWake chan struct{} // wakes runDevices; has a capacity of one
}

// New makes a hub, and restores the one in cfg.Dir if there is one.
func New(cfg Config) (*Hub, error) {
	h := &Hub{cfg: cfg.WithDefaults(), deviceWake: make(chan struct{}, 1)}
	// The controller needs the engine of the library's hub, which needs a handler.
	var handler struct{ *controller }
	library, err := hub.New(h.cfg.hubConfig(&handler, &h.network))
	if err != nil {
		return nil, err
	}
	h.hub = library
	h.cfg.Logger = h.cfg.Logger.With("hub_id", library.ID())
	h.controller, err = newController(
		h.cfg, domain.HubID(library.ID()), library.Engine(), h.wakeDevices,
	)
	if err != nil {
		return nil, errors.Join(err, library.Close())
	}
	handler.controller = h.controller
	return h, nil
}

// Run runs the hub until ctx ends, and then returns nil. It may be called once; a second call
// returns ErrRunning.
func (h *Hub) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	hubCtx, stopHub := context.WithCancel(context.WithoutCancel(ctx))
	group.Go(func() error { return h.hub.Run(hubCtx) })
	var faults sync.WaitGroup
	h.startFaults(ctx, &faults)
	h.runDevices(ctx)
	faults.Wait()
	stopHub() // after the devices: a closed hub cannot store their changes
	err := group.Wait()
	if !errors.Is(err, ErrRunning) {
		h.network.release()
	}
	return err
}

// Close closes a hub that never ran or whose Run has returned.
func (h *Hub) Close() error { return h.hub.Close() }

// runDevices advances devices and windows.
func (h *Hub) runDevices(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-h.deviceWake:
		}
		if due := h.controller.advance(time.Now()); !due.IsZero() {
			timer.Reset(max(0, time.Until(due)))
		} else {
			timer.Stop()
		}
	}
}

// wakeDevices makes runDevices advance the devices soon. It does not block.
func (h *Hub) wakeDevices() {
	select {
	case h.deviceWake <- struct{}{}:
	default:
	}
}

// startFaults starts what causes the periodic faults of the configuration until ctx ends.
func (h *Hub) startFaults(ctx context.Context, running *sync.WaitGroup) {
	every := func(d device.Duration, do func() error) {
		if d == 0 {
			return
		}
		running.Go(func() {
			ticker := time.NewTicker(time.Duration(d))
			defer ticker.Stop()
			for {
				select {
				case <-ctx.Done():
					return
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
}

// ID returns the hub's id.
func (h *Hub) ID() string { return h.hub.ID() }

// Status returns the hub's position in its log.
func (h *Hub) Status() Status { return h.hub.Status() }

// Acked returns the highest number of the present log that the cloud has acknowledged.
func (h *Hub) Acked() uint64 { return h.Status().Acked }

// Connected reports whether there is a connection on which the cloud has acknowledged the hello.
func (h *Hub) Connected() bool { return h.Status().Connected }

// WaitConnected waits until Connected returns true. Its error is the cause of ctx.
func (h *Hub) WaitConnected(ctx context.Context) error { return h.hub.WaitConnected(ctx) }

// WaitAcked waits until the cloud has acknowledged the event with number seq. Its error is the
// cause of ctx.
func (h *Hub) WaitAcked(ctx context.Context, seq uint64) error { return h.hub.WaitAcked(ctx, seq) }

// Emit numbers and stores all of events, or none if it returns an error, and sends them until they
// are acknowledged. It returns the number of the last event.
func (h *Hub) Emit(events ...Event) (last uint64, err error) { return h.hub.Emit(events...) }

// Device returns a device with all its channels; false if the hub has no device with the id.
func (h *Hub) Device(id int64) (hub.Device, bool) { return h.controller.View(id) }

// DeviceIDs returns the ids of the hub's devices in ascending order.
func (h *Hub) DeviceIDs() []int64 { return h.controller.DeviceIDs() }
