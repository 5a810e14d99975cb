package virtualhub

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"hubcloud/hubbridge/kit/hub"
	"hubcloud/hubbridge/protocol"
)

// codeSlots is how many codes a lock has room for.
const codeSlots = 30

// lockCode is a code of a lock. Its JSON is stored with the device.
type lockCode struct {
	// MAC is the code's, so that the files of a hub have no codes.
	MAC []byte `json:"mac"`
	// Own is whether the code was set at the lock.
	Own bool `json:"own,omitempty"`
	// Terms are what credentials.set said about it, without the code.
	Terms protocol.CredentialParams `json:"terms"`
}

func (d *device) codeMAC(code string) []byte {
	mac := hmac.New(sha256.New, fmt.Append(nil, d.ID, d.Spec.Name))
	mac.Write([]byte(code))
	return mac.Sum(nil)
}

// lockWithCodes returns the device if it is a lock with a keypad.
func (c *controller) lockWithCodes(id int64) (*device, error) {
	d, err := c.findDevice(id)
	if err == nil && d.Spec.Kind != "lock" {
		err = hub.Errorf(hub.ErrorNotFound, "device %d takes no codes", id)
	}
	return d, err
}

// Slots returns the slots of a lock that have a code.
func (c *controller) Slots(ctx context.Context, id int64) (protocol.CredentialSlots, error) {
	defer c.answer(ctx)()
	d, err := c.lockWithCodes(id)
	if err != nil {
		return protocol.CredentialSlots{}, err
	}
	slots := append([]int64{}, slices.Sorted(maps.Keys(d.codes))...)
	return protocol.CredentialSlots{Slots: slots, Capacity: codeSlots}, nil
}

// SetCredential sets a code of a lock, or changes one.
func (c *controller) SetCredential(ctx context.Context, p protocol.CredentialParams) error {
	defer c.answer(ctx)()
	d, err := c.lockWithCodes(p.DeviceID)
	if err != nil {
		return err
	}
	if unavailable := c.unavailable(); unavailable != nil {
		return unavailable
	}
	former, taken := d.codes[p.Slot]
	next := lockCode{MAC: former.MAC, Terms: p}
	if p.Code != "" {
		next.MAC = d.codeMAC(p.Code)
	}
	next.Terms.Code = ""
	for slot, other := range d.codes {
		if slot != p.Slot && hmac.Equal(other.MAC, next.MAC) {
			return hub.Errorf(hub.ErrorInvalidRequest, "the lock has this code in another slot")
		}
	}
	switch {
	case taken && former.Own:
		return hub.Errorf(hub.ErrorSlotTaken, "slot %d has a code that was set at the lock", p.Slot)
	case !taken && p.Code == "":
		return hub.Errorf(hub.ErrorInvalidRequest, "slot %d has no code to change", p.Slot)
	case p.Slot > codeSlots || !taken && len(d.codes) >= codeSlots:
		return hub.Errorf(hub.ErrorLockFull, "the lock has room for %d codes", codeSlots)
	}
	var events []hub.Event
	if !taken {
		events = append(events, hub.Event{
			Type: hub.EventCredentialCreated, DeviceID: d.ID, Data: createdData{p.Slot, p.Label},
		})
	}
	events = append(events, hub.Event{
		Type: hub.EventCredentialApplied, DeviceID: d.ID, Data: appliedData{"active", p.Slot},
	})
	return c.changeCodes(d, func() { d.codes[p.Slot] = next }, events...)
}

// RemoveCredential removes a code from a lock.
func (c *controller) RemoveCredential(ctx context.Context, id, slot int64) error {
	defer c.answer(ctx)()
	d, err := c.lockWithCodes(id)
	if err != nil {
		return err
	}
	if unavailable := c.unavailable(); unavailable != nil {
		return unavailable
	}
	if known, ok := d.codes[slot]; !ok || known.Own {
		return nil
	}
	return c.changeCodes(d, func() { delete(d.codes, slot) }, hub.Event{
		Type: hub.EventCredentialRevoked, DeviceID: d.ID, Data: revokedData{slot},
	})
}

type (
	createdData struct {
		Slot  int64  `json:"slot"`
		Label string `json:"label"`
	}
	appliedData struct {
		State string `json:"state"`
		Slot  int64  `json:"slot"`
	}
	revokedData struct {
		Slot int64 `json:"slot"`
	}
)

// changeCodes changes the codes of a lock and stores them with events, both or none.
func (c *controller) changeCodes(d *device, change func(), events ...hub.Event) error {
	before := maps.Clone(d.codes)
	if d.codes == nil {
		d.codes = map[int64]lockCode{}
	}
	change()
	if _, err := c.engine.Commit(c.now(), hub.Change{Events: events, Set: c.entries(d)}); err != nil {
		d.codes = before
		return err
	}
	c.wake()
	return nil
}

// EnterCode enters a code at the keypad of a lock, which opens or rejects it. It returns the slot of
// the code; 0 for none.
func (c *controller) EnterCode(id int64, code string, now time.Time) (slot int64, err error) {
	var reports []observation
	err = c.withDevice(id, func(d *device) error {
		alarm := Alarm{Type: "access_control", Event: "keypad_code_rejected", Active: true}
		for at, known := range d.codes {
			if hmac.Equal(known.MAC, d.codeMAC(code)) && known.opens(now) {
				slot = at
				alarm.Event, alarm.User = "keypad_unlock_operation", int(at)
			}
		}
		readings := []reading{d.read("alarm", alarm)}
		if slot != 0 {
			readings = append(readings, d.read("lock", false))
		}
		reports = d.update(readings, now)
		c.commit(now, hub.Change{Events: observed(d, reports), Set: c.entries(d)})
		return nil
	})
	return slot, err
}

// opens reports whether the code is valid at a time.
func (l lockCode) opens(now time.Time) bool {
	at := func(text *string) time.Time {
		if text == nil {
			return now
		}
		t, err := time.Parse(time.RFC3339Nano, *text)
		if err != nil {
			return time.Time{}
		}
		return t
	}
	if now.Before(at(l.Terms.ValidFrom)) || now.After(at(l.Terms.ValidUntil)) {
		return false
	}
	zone, err := time.LoadLocation(l.Terms.TimeZone)
	if err != nil {
		return false
	}
	local := now.In(zone)
	day, clock := strings.ToLower(local.Weekday().String()[:3]), local.Format("15:04")
	return len(l.Terms.Schedule) == 0 ||
		slices.ContainsFunc(l.Terms.Schedule, func(w protocol.WeeklyTime) bool {
			return slices.Contains(w.Days, day) && w.From <= clock && clock < w.Until
		})
}

// SetOwnCode sets a code as somebody at the lock does.
func (h *Hub) SetOwnCode(id, slot int64, code string) error {
	return h.controller.withDevice(id, func(d *device) error {
		return h.controller.changeCodes(d, func() {
			d.codes[slot] = lockCode{MAC: d.codeMAC(code), Own: true}
		}, hub.Event{
			Type: hub.EventCredentialApplied, DeviceID: d.ID, Data: appliedData{"active", slot},
		})
	})
}

// EnterCode enters a code at the keypad of a lock and returns its slot; 0 if the lock rejects it.
func (h *Hub) EnterCode(id int64, code string) (slot int64, err error) {
	return h.controller.EnterCode(id, code, time.Now())
}

func enterCode(_ context.Context, h *Hub, a Action) (string, error) {
	d, err := a.device(h, "lock")
	if err != nil {
		return "", err
	}
	var code string
	if err := json.Unmarshal(a.Value, &code); err != nil {
		return "", err
	}
	slot, err := h.EnterCode(d.ID, code)
	if slot == 0 {
		return fmt.Sprintf("device %d (%s) rejects the code", d.ID, d.Name), err
	}
	return fmt.Sprintf("device %d (%s) opens with the code in slot %d", d.ID, d.Name, slot), err
}
