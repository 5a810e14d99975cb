package virtualhub

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/kit/hub"
)

// observed returns the events of observations.
func observed(d *device, observations []observation) (events []hub.Event) {
	for _, o := range observations {
		if o.Failed {
			events = append(events, hub.StatusChanged(d.ID, o.Key, o.Endpoint, domain.ChannelFailed))
		} else {
			events = append(events, hub.Observed(d.ID, o.Key, o.Endpoint, o.Value))
		}
	}
	return events
}

// nameData is the data of device.added and device.forgotten.
type nameData struct {
	Name string `json:"name"`
	// Secure is set in device.added of a device that must join securely.
	Secure *bool `json:"secure,omitempty"`
}

// updatedData is the data of device.updated.
type updatedData struct {
	Name            string       `json:"name"`
	RemovedChannels []ChannelRef `json:"removed_channels"`
}

// device returns the device with the given id, or nil.
func (c *controller) device(id int64) *device {
	for _, d := range c.devices {
		if d.ID == id {
			return d
		}
	}
	return nil
}

// View returns a device with all its channels; false if the hub has no device with the id.
func (c *controller) View(id int64) (hub.Device, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.device(id)
	if d == nil {
		return hub.Device{}, false
	}
	return d.View(), true
}

// DeviceIDs returns the ids of the hub's devices in ascending order.
func (c *controller) DeviceIDs() []int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	ids := make([]int64, len(c.devices))
	for i, d := range c.devices {
		ids[i] = d.ID
	}
	return ids
}

// withDevice calls do for a device with the lock held. It returns an error if the hub has no device
// with the id.
func (c *controller) withDevice(id int64, do func(*device) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.device(id)
	if d == nil {
		return fmt.Errorf("no device %d", id)
	}
	return do(d)
}

// Report makes a device report a value. value is JSON of the channel's form; limits are not
// checked.
func (c *controller) Report(
	deviceID int64, ref ChannelRef, value json.RawMessage, now time.Time,
) error {
	return c.withDevice(deviceID, func(d *device) error {
		observations, err := d.Report(ref, value, now)
		if err != nil {
			return err
		}
		c.commit(now, hub.Change{Events: observed(d, observations), Set: c.entries(d)})
		return nil
	})
}

// Rename renames a device and removes channels from it: device.updated.
func (c *controller) Rename(
	deviceID int64, name string, removed []ChannelRef, now time.Time,
) error {
	return c.withDevice(deviceID, func(d *device) error {
		d.Spec.Name = name
		data := updatedData{name, d.Remove(removed...)}
		c.commit(now, hub.Change{
			Events: []hub.Event{{Type: hub.EventUpdated, DeviceID: d.ID, Data: data}},
			Set:    c.entries(d),
		})
		return nil
	})
}

// SetReachable sets whether the radio reaches a device: device.available or device.unavailable.
func (c *controller) SetReachable(deviceID int64, reachable bool, now time.Time) error {
	return c.withDevice(deviceID, func(d *device) error {
		c.faults.Unreachable = slices.DeleteFunc(
			c.faults.Unreachable, func(id int64) bool { return id == deviceID },
		)
		c.setAvailable(d, reachable, now)
		return nil
	})
}

// setAvailable changes the availability of a device, with an event if it differs.
func (c *controller) setAvailable(d *device, available bool, now time.Time) {
	if d.Available == available {
		return
	}
	d.Available = available
	kind := hub.EventUnavailable
	if available {
		kind = hub.EventAvailable
	}
	c.commit(now, hub.Change{
		Events: []hub.Event{{Type: kind, DeviceID: d.ID}}, Set: c.entries(d),
	})
}

// remove removes a device from the hub: device.forgotten.
func (c *controller) remove(d *device, now time.Time) {
	c.devices = slices.DeleteFunc(c.devices, func(other *device) bool { return other == d })
	c.commit(now, hub.Change{
		Events: []hub.Event{{Type: hub.EventForgotten, DeviceID: d.ID, Data: nameData{Name: d.Spec.Name}}},
		Delete: []string{deviceEntry(d.ID)},
	})
}
