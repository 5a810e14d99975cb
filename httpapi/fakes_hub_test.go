package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"hubcloud/domain"
)

// hub answers as a test wants: late, or with any error. No real hub does that on request. It counts
// the calls, so that tests can show that a rejected request reaches no hub.
type hub struct {
	id      domain.HubID
	devices map[int64]domain.Device
	fault   error // what it answers to everything
	takes   time.Duration
	asked   int
	sent    []domain.Command
	pairing *string // the setup code that it was opened with
}

func text(s string) *string { return &s }

func newHub() hub {
	celsius, at := text("°C"), text("2026-01-02T03:04:05.000001Z")
	return hub{
		id: hubOne,
		devices: map[int64]domain.Device{
			1: {
				ID:           1,
				Name:         "Front door",
				Manufacturer: "Acme",
				Model:        "L1",
				Channels: []domain.Channel{
					{
						Key: "lock", Kind: "lock", Readable: true, Writable: true,
						Capabilities: json.RawMessage(`{}`), Available: true,
						Value: json.RawMessage(
							`true`,
						), ObservedAt: at, Status: domain.ChannelSynchronized,
					},
					{
						Key: "pressure", Endpoint: 2, Kind: "pressure", Unit: celsius,
						Readable: true, Capabilities: json.RawMessage(`{}`),
						Status: domain.ChannelUnknown,
					},
				},
			},
			2: {
				ID:           2,
				Name:         "<Lamp> & co",
				Manufacturer: "Acme",
				Model:        "D2",
				Channels:     []domain.Channel{},
			},
		},
	}
}

// live implements Devices and Commands.
type live struct{ *world }

// ask starts a call to the hub.
func (w live) ask(hub domain.HubID) error {
	w.hub.asked++
	if hub != w.hub.id {
		panic("asked a hub of another organization")
	}
	return w.hub.fault
}

func (w live) List(_ context.Context, hub domain.HubID) ([]domain.Device, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.ask(hub); err != nil {
		return nil, err
	}
	// an event right after the list was made
	w.log = append(w.log, encodedEvent(uint64(len(w.log)+1), 0))
	return slices.SortedFunc(
		maps.Values(w.hub.devices), func(a, b domain.Device) int { return cmp.Compare(a.ID, b.ID) },
	), nil
}

func (w live) Get(ctx context.Context, hub domain.HubID, device int64) (domain.Device, error) {
	select {
	case <-time.After(w.hub.takes):
	case <-ctx.Done():
		return domain.Device{}, ctx.Err()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.ask(hub); err != nil {
		return domain.Device{}, err
	}
	d, ok := w.hub.devices[device]
	if !ok {
		return d, domain.Errorf(domain.CodeNotFound, "no device %d", device)
	}
	return d, nil
}

func (w live) Forget(_ context.Context, hub domain.HubID, _ int64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ask(hub)
}

func (w live) OpenPairing(
	_ context.Context, hub domain.HubID, setupCode *string,
) (domain.Window, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hub.pairing = setupCode
	return domain.Window{Status: domain.WindowOpen, ExpiresIn: 120}, w.ask(hub)
}

func (w live) ClosePairing(_ context.Context, hub domain.HubID) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ask(hub)
}

func (w live) OpenRemoval(ctx context.Context, hub domain.HubID) (domain.Window, error) {
	return w.OpenPairing(ctx, hub, nil)
}

func (w live) CloseRemoval(ctx context.Context, hub domain.HubID) error {
	return w.ClosePairing(ctx, hub)
}

func (w live) Send(
	_ context.Context, _ domain.Origin, c domain.Command,
) (sent domain.SentCommand, _ error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.ask(c.HubID); err != nil {
		return sent, err
	}
	if _, ok := w.hub.devices[c.DeviceID]; !ok {
		return sent, domain.Errorf(domain.CodeNotFound, "no device %d", c.DeviceID)
	}
	if c.Key == "switch" {
		return sent, domain.Errorf(domain.CodeNotFound, "no channel")
	}
	w.hub.sent = append(w.hub.sent, c)
	sent.ID = "01K7ZQ3V5T8X2M4N6P8R0S1T2V"
	sent.Channel = domain.Channel{
		Key: c.Key, Endpoint: c.Endpoint, Kind: c.Key, Available: true, Desired: c.Value,
		DesiredAt: text("2026-01-02T03:04:06.000000Z"),
		Status:    domain.ChannelPending,
	}
	return sent, nil
}

func (w live) SendAll(
	ctx context.Context, o domain.Origin, all []domain.Command,
) (results []domain.CommandResult) {
	for _, c := range all {
		sent, err := w.Send(ctx, o, c)
		results = append(results, domain.CommandResult{SentCommand: sent, Err: err})
	}
	return results
}

func (w live) Find(context.Context, domain.HubID, string) (domain.CommandRecord, error) {
	return domain.CommandRecord{}, domain.Errorf(domain.CodeNotFound, "no such command")
}

// States returns the channels that the hub's devices have of the filter's key.
func (w *world) States(
	_ context.Context, _ domain.Reach, filter domain.StateFilter, _ int, _ domain.StatePosition,
) (domain.StatesPage, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	page := domain.StatesPage{}
	for _, id := range slices.Sorted(maps.Keys(w.hub.devices)) {
		for _, c := range w.hub.devices[id].Channels {
			if filter.Key != nil && c.Key == *filter.Key {
				page.Data = append(page.Data, domain.ReportedState{DeviceID: id, Channel: c})
			}
		}
	}
	return page, w.fault
}

func (w *world) EndCursor(context.Context, domain.HubID) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return fmt.Sprintf("c%d", len(w.log)), w.fault
}
