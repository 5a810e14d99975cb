package virtualhub

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/virtualhub/device"
	"hubcloud/hubbridge/virtualhub/journal"
)

// ErrNoWindow is returned by Join and Press when the window that they need is not open.
var ErrNoWindow = errors.New("the window is not open")

// window is a pairing or removal window. The zero window is closed.
type window struct {
	domain.WindowState
	actAt     time.Time // when the installer acts; zero: nobody does
	setupCode string
}

// openWindow is what the cloud is told of a window.
type openWindow struct {
	Status    string `json:"status"`
	ExpiresIn int    `json:"expires_in"` // seconds
}

// begin opens the window, or opens it anew.
func (c *controller) begin(w *window, setupCode string, now time.Time) openWindow {
	*w = window{WindowState: domain.OpenWindow(now, c.cfg.PairingWindow), setupCode: setupCode}
	if c.cfg.Installer > 0 {
		w.actAt = now.Add(c.cfg.Installer)
	}
	return openWindow(w.View(now))
}

// setupCodes are the forms of a setup code: a PIN, a DSK (eight groups of five digits), the text of
// a QR code (Z-Wave's digits, or Matter's).
var setupCodes = regexp.MustCompile(
	`^(\d{5}|\d{5}([- ]?\d{5}){7}|90\d{50,200}|MT:[0-9A-Z.-]{10,200})$`,
)

// advanceWindows lets the installer act and windows close, and says when to look again.
func (c *controller) advanceWindows(now time.Time) (due time.Time) {
	if w := c.pairing; w.Open(now) && !w.actAt.IsZero() && !now.Before(w.actAt) {
		c.pairing.actAt = time.Time{}
		if len(c.cfg.Joinable) > 0 && !c.faults.RadioDown {
			spec := c.cfg.Joinable[c.unpacked%len(c.cfg.Joinable)]
			if _, err := c.join(spec, now); err != nil {
				c.log.Warn("no device joins", "error", err)
			}
		}
	}
	if w := c.removal; w.Open(now) && !w.actAt.IsZero() && !now.Before(w.actAt) {
		c.removal.actAt = time.Time{}
		if d := c.device(c.joined); d != nil && !c.faults.RadioDown {
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

// join adds a device that somebody makes join in the pairing window, and closes the window: it is
// for one device.
func (c *controller) join(spec DeviceSpec, now time.Time) (int64, error) {
	used, open := c.pairing.Use(now)
	if !open {
		return 0, fmt.Errorf("pairing: %w", ErrNoWindow)
	}
	if c.faults.RadioDown {
		return 0, errors.New("the hub's radio is down")
	}
	if c.pairing.setupCode == "" {
		spec.Insecure = true // only what must join securely to be driven minds
	}
	d, err := device.New(c.nextDevice, spec, seed(c.id), now)
	if err != nil {
		return 0, err
	}
	c.nextDevice++
	c.unpacked++
	c.joined = d.ID
	c.pairing = window{WindowState: used}
	c.devices = append(c.devices, d)
	events := []json.RawMessage{c.event(eventAdded, d.ID, now, named{d.Spec.Name})}
	for _, o := range d.First() {
		events = append(events, c.event(eventObserved, d.ID, now, o))
	}
	c.commit(journal.Change{Events: events, Set: c.entries(d)})
	return d.ID, nil
}

// named is the data of the events that tell a device's name.
type named struct {
	Name string `json:"name"`
}

// press takes a device off the hub whose button somebody presses in the removal window, and closes
// the window. False when it is not open.
func (c *controller) press(d *device.Device, now time.Time) bool {
	used, open := c.removal.Use(now)
	if open {
		c.removal = window{WindowState: used}
		c.remove(d, now)
	}
	return open
}

// remove takes a device off the hub.
func (c *controller) remove(d *device.Device, now time.Time) {
	c.devices = slices.DeleteFunc(c.devices, func(other *device.Device) bool { return other == d })
	c.commit(journal.Change{
		Events: []json.RawMessage{c.event(eventForgotten, d.ID, now, named{d.Spec.Name})},
		Delete: []string{deviceEntry(d.ID)},
	})
}
