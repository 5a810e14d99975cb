package attention

import (
	"fmt"
	"time"

	"hubcloud/domain"
)

// Devices returns the devices of the reported states of one hub's channels, which must be ordered
// by device. A device is available unless all its channels are not.
func Devices(states []domain.ReportedState) []DeviceState {
	var devices []DeviceState
	for _, state := range states {
		if n := len(devices); n == 0 || devices[n-1].ID != state.DeviceID {
			devices = append(devices, deviceOf(state))
		}
		device := &devices[len(devices)-1]
		device.Available = device.Available || state.Channel.Available
		device.Channels = append(device.Channels, ChannelState{
			Key: state.Channel.Key, Endpoint: state.Channel.Endpoint,
			Value: state.Channel.Value, ObservedAt: timeOf(state.Channel.ObservedAt),
			ChangedAt: orZero(state.ChangedAt), Desired: state.Channel.Desired,
			DesiredAt: timeOf(state.Channel.DesiredAt), Status: state.Channel.Status,
			Standing: state.Standing, Logged: state.Logged,
		})
	}
	return devices
}

// deviceOf returns the device of a channel, without channels.
func deviceOf(state domain.ReportedState) DeviceState {
	device := DeviceState{
		ID: state.DeviceID, Name: fmt.Sprint("Device ", state.DeviceID),
		AvailableSince: orZero(state.AvailableSince), AvailableLogged: state.AvailableLogged,
	}
	if state.Name != nil && domain.Shows(*state.Name) {
		device.Name = *state.Name
	}
	if state.Room != nil {
		device.Room = *state.Room
	}
	return device
}

// timeOf returns a time of a channel; zero for none or an invalid one.
func timeOf(text *string) time.Time {
	if text == nil {
		return time.Time{}
	}
	at, _ := time.Parse(domain.TimeLayout, *text) // zero if it is invalid
	return at
}

func orZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}
