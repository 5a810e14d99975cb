package virtualhub

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"hubcloud/domain"
	"hubcloud/hubbridge/kit/hub"
)

// Hub is one hub: a hub of the library, with simulated devices and faults. Make it with New. The end
// of Run closes it; Close closes a hub that never ran.
type Hub struct {
	*hub.Hub
	cfg        Config
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
	h.Hub = library
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
// returns hub.ErrRunning.
func (h *Hub) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	hubCtx, stopHub := context.WithCancel(context.WithoutCancel(ctx))
	group.Go(func() error { return h.Hub.Run(hubCtx) })
	var faults sync.WaitGroup
	h.startFaults(ctx, &faults)
	h.runDevices(ctx)
	faults.Wait()
	stopHub() // after the devices: a closed hub cannot store their changes
	return group.Wait()
}

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
	every := func(d Duration, do func() error) {
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

// Connected reports whether there is a connection on which the cloud has acknowledged the hello.
func (h *Hub) Connected() bool { return h.Status().Connected }

// Device returns a device with all its channels; false if the hub has no device with the id.
func (h *Hub) Device(id int64) (hub.Device, bool) { return h.controller.View(id) }

// DeviceIDs returns the ids of the hub's devices in ascending order.
func (h *Hub) DeviceIDs() []int64 { return h.controller.DeviceIDs() }
