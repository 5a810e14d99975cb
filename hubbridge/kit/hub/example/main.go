// Command example is a whole hub: a lock on the hub library, to copy and begin with.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"log"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/kit/hub"
)

// house is the hub's own part: a lock, which is device 1. No other device joins.
type house struct {
	hub  *hub.Hub
	mu   sync.Mutex
	lock domain.ChannelState
}

func channel(state domain.ChannelState) hub.Channel {
	return hub.Channel{Key: "lock", Readable: true, Writable: true, Available: true, ChannelState: state}
}

func (h *house) Device(_ context.Context, id int64) (hub.Device, error) {
	if id != 1 {
		return hub.Device{}, hub.Errorf(hub.ErrorNotFound, "no device %d", id)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return hub.Device{ID: 1, Name: "Front door", Channels: []hub.Channel{channel(h.lock)}}, nil
}

func (h *house) Devices(ctx context.Context) ([]hub.Device, error) {
	device, err := h.Device(ctx, 1)
	return []hub.Device{device}, err
}

func (h *house) Command(ctx context.Context, cmd *hub.Command) error {
	if cmd.DeviceID != 1 || cmd.Key != "lock" || cmd.Endpoint != 0 {
		return hub.Errorf(hub.ErrorNotFound, "device %d has no %s", cmd.DeviceID, cmd.Key)
	}
	var value *bool
	if json.Unmarshal(cmd.Value, &value) != nil || value == nil {
		return hub.Errorf(hub.ErrorInvalidRequest, "value of lock must be true or false")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	commanded := h.lock.Commanded(*value, time.Now())
	if err := cmd.Accept(channel(commanded), hub.Change{}); err != nil {
		return err
	}
	h.lock = commanded
	time.AfterFunc(500*time.Millisecond, func() { // the bolt has moved
		h.mu.Lock()
		defer h.mu.Unlock()
		h.lock, _ = h.lock.Reported(*value, time.Now())
		_, _ = h.hub.Emit(hub.Observed(1, "lock", 0, *value)) // fails only if the hub has ended
	})
	return nil
}

func (h *house) Forget(ctx context.Context, id int64) error {
	if _, err := h.Device(ctx, id); err != nil {
		return err
	}
	return hub.Errorf(hub.ErrorInvalidRequest, "device %d is still on the hub's network", id)
}

func (h *house) OpenPairing(context.Context, string) (time.Duration, error) {
	return 2 * time.Minute, nil
}
func (h *house) ClosePairing(context.Context) error                 { return nil }
func (h *house) OpenRemoval(context.Context) (time.Duration, error) { return 2 * time.Minute, nil }
func (h *house) CloseRemoval(context.Context) error                 { return nil }

func main() {
	h := &house{lock: domain.NewChannelState(true, time.Now())}
	cfg := hub.Config{Firmware: "1.0.0", Handler: h}
	flag.StringVar(&cfg.EnrollURL, "enroll", "", "base `URL` of the cloud, without /link/v1")
	flag.StringVar(&cfg.Serial, "serial", "", "`serial` of the hub")
	flag.StringVar(&cfg.Secret, "secret", "", "enrolment `secret` of the hub")
	flag.StringVar(&cfg.Dir, "dir", "", "`folder` that keeps certificate and events over a restart")
	flag.Parse()
	var err error
	if h.hub, err = hub.New(cfg); err != nil {
		log.Print(err)
		os.Exit(2)
	}
	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	if err := h.hub.Run(ctx); err != nil {
		log.Fatal(err)
	}
}
