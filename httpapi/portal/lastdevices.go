package portal

import (
	"context"

	"hubcloud/domain"
)

// lastStates is how many channels lastDeviceList reads at most: about a thousand devices have as
// many.
const lastStates = 10_000

// lastDeviceList returns the devices of a hub that does not answer, with the values that they last
// reported. Their channels are Old and have no controls. The list is empty if nothing is known.
func (p *Portal) lastDeviceList(
	ctx context.Context, org string, hub domain.HubID, request devicesRequest,
) (deviceList, error) {
	devices, err := p.lastDevices(ctx, org, hub)
	if err != nil {
		return deviceList{}, err
	}
	list, selected := selectDevices(devices, request)
	p.explainDiverged(ctx, org, hub, selected)
	return list, nil
}

// lastDevices returns the last known devices of a hub. It returns none while the read models are
// being built.
func (p *Portal) lastDevices(
	ctx context.Context, org string, hub domain.HubID,
) ([]hubDevice, error) {
	page, err := p.Reported.States(
		ctx, domain.Reach{OrgID: org}, domain.StateFilter{HubID: &hub}, lastStates,
		domain.StatePosition{},
	)
	if codeOf(err) == domain.CodeServiceUnavailable {
		return nil, nil // the page is shown without them
	}
	if err != nil {
		return nil, err
	}
	var devices []hubDevice
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
func lastDevice(hub domain.HubID, states []domain.ReportedState) hubDevice {
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
