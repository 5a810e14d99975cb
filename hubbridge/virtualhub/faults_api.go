package virtualhub

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"hubcloud/hubbridge/protocol"
	"hubcloud/hubbridge/virtualhub/device"
	"hubcloud/hubbridge/virtualhub/journal"
)

// ChannelRef names a channel within its device.
type ChannelRef = device.Ref

// Jam makes the device's commands end with the other value, as a lock whose bolt does not move.
// Channels that are not boolean do not jam.
func (h *Hub) Jam(deviceID int64) {
	h.c.setFaults(func(f *Faults) { f.Jammed = append(f.Jammed, deviceID) })
}

// Unjam mends a jammed device.
func (h *Hub) Unjam(deviceID int64) {
	h.c.setFaults(
		func(f *Faults) { f.Jammed = slices.DeleteFunc(f.Jammed, func(id int64) bool { return id == deviceID }) },
	)
}

// LateAnswers holds back each answer for d; 0 answers at once again.
func (h *Hub) LateAnswers(d time.Duration) {
	h.c.setFaults(func(f *Faults) { f.LateAnswers = device.Duration(d) })
}

// RefuseCommands makes the hub refuse every command with command_refused, or no longer.
func (h *Hub) RefuseCommands(on bool) { h.c.setFaults(func(f *Faults) { f.RefuseCommands = on }) }

// RadioDown takes the hub's radio down, or up again. Commands and windows are then answered
// hub_unavailable, a command under way fails.
func (h *Hub) RadioDown(on bool) { h.c.setFaults(func(f *Faults) { f.RadioDown = on }) }

// ClockUnknown makes the hub forget the time, or learn it again.
func (h *Hub) ClockUnknown(on bool) {
	h.c.setFaults(func(f *Faults) { f.ClockUnknown = on })
}

// Heedless makes the hub send without regard to the limit of 2,000 unacknowledged events, or heed
// it again.
func (h *Hub) Heedless(on bool) { h.c.setFaults(func(f *Faults) { f.Heedless = on }) }

// Unreachable takes a device out of the radio's reach: device.unavailable.
func (h *Hub) Unreachable(deviceID int64) error { return h.setReach(deviceID, false) }

// Reachable brings it back: device.available.
func (h *Hub) Reachable(deviceID int64) error { return h.setReach(deviceID, true) }

func (h *Hub) setReach(deviceID int64, available bool) error {
	return h.onDevice(deviceID, func(d *device.Device, now time.Time) error {
		h.c.faults.Unreachable = slices.DeleteFunc(
			h.c.faults.Unreachable, func(id int64) bool { return id == deviceID },
		)
		h.c.reach(d, available, now)
		return nil
	})
}

// Report makes a device report a value, as when somebody turns the knob of a lock, water reaches a
// leak sensor, or a key of a keypad is pressed. The value is encoded as JSON; its form is checked,
// its bounds are not.
func (h *Hub) Report(deviceID int64, ref ChannelRef, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("value of %s: %w", ref, err)
	}
	return h.onDevice(deviceID, func(d *device.Device, now time.Time) error {
		told, err := d.Report(ref, raw, now)
		if err != nil {
			return err
		}
		var events []json.RawMessage
		for _, o := range told {
			events = append(events, h.c.event(eventObserved, d.ID, now, o))
		}
		h.c.commit(journal.Change{Events: events, Set: h.c.entries(d)})
		return nil
	})
}

// Rename makes a device report another name and no longer have some of its channels, as after an
// update of its firmware: device.updated.
func (h *Hub) Rename(deviceID int64, name string, removed ...ChannelRef) error {
	return h.onDevice(deviceID, func(d *device.Device, now time.Time) error {
		d.Spec.Name = name
		data := struct {
			Name            string       `json:"name"`
			RemovedChannels []ChannelRef `json:"removed_channels"`
		}{name, d.Remove(removed...)}
		h.c.commit(
			journal.Change{
				Events: []json.RawMessage{h.c.event(eventUpdated, d.ID, now, data)},
				Set:    h.c.entries(d),
			},
		)
		return nil
	})
}

// Join makes a device join in the open pairing window: device.added with the returned id, then what
// it reports. ErrNoWindow when none is open. A lock or barrier that joins while no setup code was
// given is not driven.
func (h *Hub) Join(spec DeviceSpec) (deviceID int64, err error) {
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	return h.c.join(spec, time.Now())
}

// Press presses the button of a device: in an open removal window the device leaves the hub
// (device.forgotten), and the window closes. ErrNoWindow when none is open.
func (h *Hub) Press(deviceID int64) error {
	return h.onDevice(deviceID, func(d *device.Device, now time.Time) error {
		if !h.c.press(d, now) {
			return fmt.Errorf("removal: %w", ErrNoWindow)
		}
		return nil
	})
}

// onDevice does something to a device under the lock.
func (h *Hub) onDevice(deviceID int64, do func(*device.Device, time.Time) error) error {
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	d := h.c.device(deviceID)
	if d == nil {
		return fmt.Errorf("no device %d", deviceID)
	}
	return do(d, time.Now())
}

// LoseEvents loses n events: their numbers are given out, and they are gone, with everything that
// was not acknowledged before them. The hub then says hello. It returns the numbers that are lost.
func (h *Hub) LoseEvents(n uint64) (from, to uint64, err error) { return h.c.loseEvents(n) }

// EmitMalformed emits one malformed event of each sort that the hub link names, and returns the
// number of the last.
func (h *Hub) EmitMalformed() (last uint64, err error) {
	var events []Event
	for _, raw := range Malformed() {
		events = append(events, Event{Raw: raw})
	}
	return h.Emit(events...)
}

// Flood emits n events at once, and returns the number of the last. The hub holds as many as it has
// room for.
func (h *Hub) Flood(n int) (last uint64, err error) {
	for n > 0 {
		events := make([]Event, min(n, protocol.MaxMessageEvents))
		for i := range events {
			events[i] = Event{
				Type:     eventObserved,
				DeviceID: 1,
				Data:     device.Observation{Ref: ChannelRef{Key: "power"}, Value: float64(n - i)},
			}
		}
		if last, err = h.Emit(events...); err != nil {
			return last, err
		}
		n -= len(events)
	}
	return last, nil
}
