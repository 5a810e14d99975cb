package virtualhub

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"hubcloud/hubbridge/virtualhub/device"
	"hubcloud/hubbridge/virtualhub/journal"
)

// Faults are what is wrong with a hub for as long as nobody mends it. The zero Faults are none. It
// is the "faults" of a devices file, and can be put together from text with Set.
type Faults struct {
	// Jammed are the devices whose commands end with the other value.
	Jammed []int64 `json:"jammed,omitempty"`
	// Unreachable are devices that the radio cannot reach.
	Unreachable []int64 `json:"unreachable,omitempty"`
	// LateAnswers is how long the hub holds back each answer.
	LateAnswers device.Duration `json:"late_answers,omitempty"`
	// RefuseCommands makes the hub refuse every command (command_refused).
	RefuseCommands bool `json:"refuse_commands,omitempty"`
	// RadioDown: nothing reaches a device, nothing comes from one; commands are answered
	// hub_unavailable.
	RadioDown bool `json:"radio_down,omitempty"`
	// ClockUnknown: the hub does not know the time. Its events are stamped from 2000-01-01 on and
	// not trusted; commands are answered hub_unavailable.
	ClockUnknown bool `json:"clock_unknown,omitempty"`
	// Heedless makes the hub send without regard to the limit of unacknowledged events.
	Heedless bool `json:"heedless,omitempty"`
	// CutEvery cuts the connection that often; 0: never.
	CutEvery device.Duration `json:"cut_every,omitempty"`
	// LoseEvery loses ten events that often; 0: never.
	LoseEvery device.Duration `json:"lose_every,omitempty"`
	// MalformEvery sends one malformed event of each sort that often; 0: never.
	MalformEvery device.Duration `json:"malform_every,omitempty"`
	// ResetEvery resets the hub to factory state that often; 0: never.
	ResetEvery device.Duration `json:"reset_every,omitempty"`
}

// Set adds one fault written as text: the field's name in a devices file, with a value after "="
// where it has one: "radio_down", "late_answers=3s", "jammed=1,2".
func (f *Faults) Set(text string) error {
	name, value, given := strings.Cut(text, "=")
	var raw string
	switch name {
	case "jammed", "unreachable":
		for id := range strings.SplitSeq(value, ",") {
			if _, err := strconv.ParseInt(id, 10, 64); err != nil {
				return fmt.Errorf("fault %s: %q is no device id", name, id)
			}
		}
		raw = "[" + value + "]"
	case "refuse_commands", "radio_down", "clock_unknown", "heedless":
		if raw = "true"; given {
			raw = value
		}
	case "late_answers", "cut_every", "lose_every", "malform_every", "reset_every":
		raw = strconv.Quote(value)
	default:
		return fmt.Errorf("there is no fault %q", name)
	}
	if err := json.Unmarshal([]byte(`{"`+name+`":`+raw+`}`), f); err != nil {
		return fmt.Errorf("fault %s: %w", name, err)
	}
	return nil
}

func (f Faults) clone() Faults {
	f.Jammed, f.Unreachable = slices.Clone(f.Jammed), slices.Clone(f.Unreachable)
	return f
}

// layFaults makes devices what the faults say.
func (c *controller) layFaults() {
	for _, d := range c.devices {
		d.Jammed = slices.Contains(c.faults.Jammed, d.ID)
	}
	c.window.Limit = windowLimit(c.faults.Heedless)
	for _, id := range c.faults.Unreachable {
		if d := c.device(id); d != nil {
			c.reach(d, false, time.Now())
		}
	}
}

// reach notes whether the radio reaches a device.
func (c *controller) reach(d *device.Device, available bool, now time.Time) {
	if d.Available == available {
		return
	}
	d.Available = available
	kind := eventUnavailable
	if available {
		kind = eventAvailable
	}
	c.commit(
		journal.Change{Events: []json.RawMessage{c.event(kind, d.ID, now, nil)}, Set: c.entries(d)},
	)
}

// Malformed are events that the cloud cannot store, one of each sort that the hub link names, each
// for Event.Raw.
func Malformed() []json.RawMessage {
	const at = `"time":"2026-01-02T03:04:05.123456Z"`
	huge := `{"type":"channel.observed","device_id":1,` + at + `,"clock_trusted":true,"data":{"padding":"` + strings.Repeat(
		"x", 17<<10,
	) + `"}}`
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

// setFaults changes the faults under the lock and lays them on the hub.
func (c *controller) setFaults(change func(*Faults)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.faults)
	c.layFaults()
	c.stir()
}

// loseEvents loses n events: it gives out their numbers, and drops what was held before.
func (c *controller) loseEvents(n uint64) (from, to uint64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n == 0 {
		return 0, 0, errors.New("no events to lose")
	}
	from, to, err = c.journal.Skip(n)
	c.stir()
	return from, to, err
}

// reset makes the hub what it was when it was made: a new log, the first devices, no command ids.
// It keeps its certificate.
func (c *controller) reset(now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	set, err := c.fresh(now)
	if err != nil {
		return err
	}
	if err := c.journal.Reset(newLog(), set); err != nil {
		return err
	}
	c.acked = 0
	c.layFaults()
	if c.window.Connected() {
		c.window.Connect() // the cloud has heard of no such log: hello
	}
	c.stir()
	return nil
}

func (c *controller) lateness() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Duration(c.faults.LateAnswers)
}
