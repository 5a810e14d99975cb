package virtualhub

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/kit/hub"
)

// ErrNoWindow is returned by Join and Press if the window that they need is not open.
var ErrNoWindow = errors.New("the window is not open")

// window is a pairing or removal window. The zero window is closed.
type window struct {
	domain.WindowState
	actAt     time.Time // when the installer acts; zero for never
	setupCode string
}

// open opens w for the whole configured time, also if it is already open. It returns that time.
func (c *controller) open(w *window, setupCode string) (time.Duration, error) {
	if unavailable := c.unavailable(); unavailable != nil {
		return 0, unavailable
	}
	now := c.now()
	*w = window{WindowState: domain.OpenWindow(now, c.cfg.PairingWindow), setupCode: setupCode}
	if c.cfg.Installer > 0 {
		w.actAt = now.Add(c.cfg.Installer)
	}
	c.wake()
	return c.cfg.PairingWindow, nil
}

// advanceWindows lets the installer act and closes expired windows. It returns when to call it
// next.
func (c *controller) advanceWindows(now time.Time) (due time.Time) {
	if w := c.pairing; w.Open(now) && !w.actAt.IsZero() && !now.Before(w.actAt) {
		c.pairing.actAt = time.Time{}
		if len(c.cfg.Joinable) > 0 && !c.faults.RadioDown {
			spec := c.cfg.Joinable[c.joins%len(c.cfg.Joinable)]
			if _, err := c.join(spec, now); err != nil {
				c.cfg.Logger.Warn("device not joined", "error", err)
			}
		}
	}
	if w := c.removal; w.Open(now) && !w.actAt.IsZero() && !now.Before(w.actAt) {
		c.removal.actAt = time.Time{}
		if d := c.device(c.lastJoined); d != nil && !c.faults.RadioDown {
			c.press(d, now)
		}
	}
	for _, w := range []*window{&c.pairing, &c.removal} {
		if !w.Open(now) {
			*w = window{}
			continue
		}
		for _, t := range []time.Time{w.Until, w.actAt} {
			if !t.IsZero() && (due.IsZero() || t.Before(due)) {
				due = t
			}
		}
	}
	return due
}

// Join makes a device join in the open pairing window, which closes: device.added with the returned
// id, then the device's first values. It returns ErrNoWindow if no pairing window is open, unless
// the hub has kept a QR code (SmartStart).
func (c *controller) Join(spec DeviceSpec, now time.Time) (deviceID int64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.join(spec, now)
}

func (c *controller) join(spec DeviceSpec, now time.Time) (int64, error) {
	used, open := c.pairing.Use(now)
	if !open && !c.smartStart {
		return 0, fmt.Errorf("pairing: %w", ErrNoWindow)
	}
	if c.faults.RadioDown {
		return 0, errors.New("the hub's radio is down")
	}
	if open && c.pairing.setupCode == "" {
		spec.Insecure = true // matters only for devices that must join securely, such as locks
	}
	d, err := newDevice(c.nextDevice, spec, seed(c.id), now)
	if err != nil {
		return 0, err
	}
	c.nextDevice++
	c.joins++
	c.lastJoined = d.ID
	if open {
		c.pairing = window{WindowState: used}
	}
	c.smartStart = false
	c.devices = append(c.devices, d)
	set := c.entries(d)
	events := []hub.Event{{Type: hub.EventAdded, DeviceID: d.ID, Data: joined(d)}}
	if spec.Interview > 0 {
		c.interviews = append(c.interviews, interview{
			d, d.Channels, now.Add(time.Duration(spec.Interview)),
		})
		d.Channels = nil
	}
	events = append(events, observed(d, d.First())...)
	c.commit(now, hub.Change{Events: events, Set: set})
	return d.ID, nil
}

// joined returns the data of device.added.
func joined(d *device) nameData {
	data := nameData{Name: d.Spec.Name}
	for _, key := range []string{"lock", "barrier"} {
		if d.Channel(ChannelRef{Key: key}) != nil {
			secure := !d.Spec.Insecure
			data.Secure = &secure
		}
	}
	return data
}

// interview is a device that has joined and whose channels are not known until a time.
type interview struct {
	device   *device
	channels []*channel
	until    time.Time
}

// advanceInterviews adds the channels of devices whose interviews have ended: device.updated, then
// their first values. It returns when to call it next.
func (c *controller) advanceInterviews(now time.Time) (due time.Time) {
	c.interviews = slices.DeleteFunc(c.interviews, func(i interview) bool {
		if now.Before(i.until) {
			if due.IsZero() || i.until.Before(due) {
				due = i.until
			}
			return false
		}
		d := i.device
		if c.device(d.ID) != d {
			return true // has left
		}
		d.Channels = i.channels
		events := []hub.Event{{
			Type: hub.EventUpdated, DeviceID: d.ID, Data: updatedData{d.Spec.Name, []ChannelRef{}},
		}}
		events = append(events, observed(d, d.First())...)
		c.commit(now, hub.Change{Events: events, Set: c.entries(d)})
		return true
	})
	return due
}

// Press presses the button of a device: in an open removal window, which closes, the device leaves
// the hub (device.forgotten). It returns ErrNoWindow if no removal window is open.
func (c *controller) Press(deviceID int64, now time.Time) error {
	return c.withDevice(deviceID, func(d *device) error {
		if !c.press(d, now) {
			return fmt.Errorf("removal: %w", ErrNoWindow)
		}
		return nil
	})
}

// press reports whether a removal window was open.
func (c *controller) press(d *device, now time.Time) bool {
	used, open := c.removal.Use(now)
	if open {
		c.removal = window{WindowState: used}
		c.remove(d, now)
	}
	return open
}
