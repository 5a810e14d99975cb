package live

import (
	"context"

	"hubcloud/domain"
)

// lastStates is how many channels LastDevices reads at most: about those of a thousand devices.
const lastStates = 10_000

// ReportedStates reads what devices last reported.
type ReportedStates interface {
	// States returns the last reported states of the channels that a filter selects, in the order
	// of their devices, also of hubs that are offline: at most limit, after a position.
	States(
		ctx context.Context, org string, filter domain.StateFilter, limit int,
		after domain.StatePosition,
	) (domain.Page[domain.ReportedState], error)
}

// LastDevices returns the devices of a hub that does not answer, with the values that they last
// reported. Their channels are Old and have no controls. The list is empty if nothing is known.
func (l *Live) LastDevices(
	ctx context.Context, org string, hub domain.HubID, request DevicesRequest,
) (DeviceList, error) {
	devices, err := l.lastDevices(ctx, org, hub)
	if err != nil {
		return DeviceList{}, err
	}
	list, _ := selectDevices(devices, request)
	return list, nil
}

// lastDevices returns the last known devices of a hub. It returns none while the read models are
// being built.
func (l *Live) lastDevices(
	ctx context.Context, org string, hub domain.HubID,
) ([]Device, error) {
	if l.cfg.States == nil {
		return nil, nil
	}
	page, err := l.cfg.States.States(
		ctx, org, domain.StateFilter{HubID: &hub}, lastStates, domain.StatePosition{},
	)
	if codeOf(err) == domain.CodeServiceUnavailable {
		return nil, nil // the page is shown without them
	}
	if err != nil {
		return nil, err
	}
	var devices []Device
	for begin := 0; begin < len(page.Data); {
		end := begin + 1
		for end < len(page.Data) && page.Data[end].DeviceID == page.Data[begin].DeviceID {
			end++
		}
		devices = append(devices, lastDevice(hub, page.Data[begin:end]))
		begin = end
	}
	return devices, nil
}

// lastDevice returns a device from the states of its channels.
func lastDevice(hub domain.HubID, states []domain.ReportedState) Device {
	first := states[0]
	reported := domain.Device{
		ID: first.DeviceID, Manufacturer: first.Manufacturer, Model: first.Model,
	}
	for _, state := range states {
		channel := state.Channel
		channel.Writable = false // commands need the hub
		reported.Channels = append(reported.Channels, channel)
	}
	device := deviceOf(hub, reported, domain.DeviceLabel{Name: first.Name, Room: first.Room})
	for i := range device.Channels {
		device.Channels[i].Old = true
	}
	return device
}
