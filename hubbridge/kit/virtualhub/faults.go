package virtualhub

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"hubcloud/hubbridge/kit/hub"
	"hubcloud/hubbridge/protocol"
)

// Jam makes the device's commands end with the opposite value, like a lock whose bolt does not
// move. It affects boolean channels only.
func (h *Hub) Jam(deviceID int64) {
	h.controller.SetFaults(func(f *Faults) {
		if !slices.Contains(f.Jammed, deviceID) {
			f.Jammed = append(f.Jammed, deviceID)
		}
	})
}

// Unjam ends Jam.
func (h *Hub) Unjam(deviceID int64) {
	h.controller.SetFaults(func(f *Faults) {
		f.Jammed = slices.DeleteFunc(f.Jammed, func(id int64) bool { return id == deviceID })
	})
}

// LateAnswers delays each response by d; 0 ends the delay.
func (h *Hub) LateAnswers(d time.Duration) {
	h.controller.SetFaults(func(f *Faults) { f.LateAnswers = Duration(d) })
}

// RejectCommands makes the hub answer every command with command_refused while on.
func (h *Hub) RejectCommands(on bool) {
	h.controller.SetFaults(func(f *Faults) { f.RejectCommands = on })
}

// RadioDown cuts the hub off from its devices while on: commands and windows are answered with
// hub_unavailable, and a pending command fails.
func (h *Hub) RadioDown(on bool) { h.controller.SetFaults(func(f *Faults) { f.RadioDown = on }) }

// ClockUnknown makes the hub not know the time while on.
func (h *Hub) ClockUnknown(on bool) {
	h.controller.SetFaults(func(f *Faults) { f.ClockUnknown = on })
}

// Faults returns the present lasting faults.
func (h *Hub) Faults() Faults { return h.controller.Faults() }

// Unreachable puts a device out of the radio's reach: device.unavailable.
func (h *Hub) Unreachable(deviceID int64) error {
	return h.controller.SetReachable(deviceID, false, time.Now())
}

// Reachable puts a device back within the radio's reach: device.available.
func (h *Hub) Reachable(deviceID int64) error {
	return h.controller.SetReachable(deviceID, true, time.Now())
}

// Report makes a device report a value, as if a person turned the knob of a lock, water reached a
// leak sensor, or a key of a keypad was pressed. The value is encoded as JSON. Its form is
// validated, its limits are not.
func (h *Hub) Report(deviceID int64, ref ChannelRef, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("value of %s: %w", ref, err)
	}
	return h.controller.Report(deviceID, ref, raw, time.Now())
}

// Rename renames a device and removes channels from it, as a firmware update may do:
// device.updated.
func (h *Hub) Rename(deviceID int64, name string, removed ...ChannelRef) error {
	return h.controller.Rename(deviceID, name, removed, time.Now())
}

// Join makes a device join in the open pairing window, which closes: device.added with the returned
// id, then the device's first values; with DeviceSpec.Interview its channels follow later. It
// returns ErrNoWindow if no pairing window is open and the hub has kept no QR code of a window
// before. A lock or barrier that joins without a setup code rejects commands.
func (h *Hub) Join(spec DeviceSpec) (deviceID int64, err error) {
	return h.controller.Join(spec, time.Now())
}

// Command sets a channel from the hub's side, as with an app in the building: channel.desired, and
// later the outcome. Its error is a *hub.Error if the hub rejects the command.
func (h *Hub) Command(ctx context.Context, deviceID int64, ref ChannelRef, value any) error {
	params, err := json.Marshal(map[string]any{
		"command_id": "local-" + rand.Text(), "device_id": deviceID,
		"key": ref.Key, "endpoint": ref.Endpoint, "value": value,
	})
	if err != nil {
		return fmt.Errorf("value of %s: %w", ref, err)
	}
	response := h.Engine().HandleRequest(ctx, h.controller, protocol.Request{
		ID: "local", Method: protocol.MethodChannelsCommand, Params: params,
	}, time.Now())
	if response.Error != nil {
		return &hub.Error{Type: response.Error.Type, Message: response.Error.Message}
	}
	return nil
}

// OpenPairing opens the pairing window from the hub's side, as with a button on the hub.
func (h *Hub) OpenPairing(ctx context.Context) error {
	_, err := h.controller.OpenPairing(ctx, "")
	return err
}

// OpenRemoval opens the removal window from the hub's side, as with a button on the hub.
func (h *Hub) OpenRemoval(ctx context.Context) error {
	_, err := h.controller.OpenRemoval(ctx)
	return err
}

// Press presses the button of a device: in an open removal window, which closes, the device leaves
// the hub (device.forgotten). It returns ErrNoWindow if no removal window is open.
func (h *Hub) Press(deviceID int64) error { return h.controller.Press(deviceID, time.Now()) }

// CutConnection closes the TCP connection without a TLS or MQTT goodbye. The hub connects again.
func (h *Hub) CutConnection() { h.network.cut() }

// Restart simulates a power cycle: the connection is cut, windows close, and running requests get
// no response. Events, devices and command ids survive, even without a directory.
func (h *Hub) Restart() {
	h.controller.Restart(time.Now())
	h.network.cut()
	h.Hub.Restart()
}

// FactoryReset resets everything but the certificate: a new log, the configured devices, no command
// ids. It then restarts the hub.
func (h *Hub) FactoryReset() error {
	if err := h.controller.Reset(time.Now()); err != nil {
		return err
	}
	h.Restart()
	return nil
}

// LoseEvents uses n numbers without events and drops every unacknowledged event before them. The
// hub then says hello. It returns the first and last number that are lost.
func (h *Hub) LoseEvents(n uint64) (from, to uint64, err error) {
	return h.Engine().LoseEvents(n)
}

// EmitMalformed emits the events of MalformedEvents and returns the number of the last.
func (h *Hub) EmitMalformed() (last uint64, err error) {
	var events []Event
	for _, raw := range MalformedEvents() {
		events = append(events, Event{Raw: raw})
	}
	return h.Emit(events...)
}

// MalformedEvents returns events for Event.Raw that the cloud cannot store, one of each kind that
// the hub protocol names.
func MalformedEvents() []json.RawMessage {
	const at = `"time":"2026-01-02T03:04:05.123456Z"`
	huge := `{"type":"channel.observed","device_id":1,` + at +
		`,"clock_trusted":true,"data":{"padding":"` + strings.Repeat("x", 17<<10) + `"}}`
	return []json.RawMessage{
		json.RawMessage(`{"type":"","device_id":1,` + at + `,"clock_trusted":true,"data":{}}`),
		json.RawMessage(`{"type":7,"device_id":1,` + at + `,"clock_trusted":true,"data":{}}`),
		json.RawMessage(
			`{"type":"channel.observed","device_id":1,"time":"yesterday","clock_trusted":true,"data":{}}`,
		),
		json.RawMessage(
			`{"type":"channel.observed","device_id":"1",` + at + `,"clock_trusted":true,"data":{}}`,
		),
		json.RawMessage(
			`{"type":"channel.observed","device_id":1.5,` + at + `,"clock_trusted":true,"data":{}}`,
		),
		json.RawMessage(
			`{"type":"channel.observed","device_id":1,` + at + `,"clock_trusted":"yes","data":{}}`,
		),
		json.RawMessage(
			`{"type":"channel.observed","device_id":1,` + at + `,"clock_trusted":true,"data":[]}`,
		),
		json.RawMessage(
			`{"type":"hub.connected","device_id":null,` + at + `,"clock_trusted":true,"data":{}}`,
		),
		json.RawMessage(huge),
		json.RawMessage(`{}`),
	}
}
