package virtualhub

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"hubcloud/hubbridge/protocol"
)

// Faults are the lasting faults of a hub. The zero Faults are none. Its JSON is the "faults" object
// of a devices file; Set reads one fault from text.
type Faults struct {
	// Jammed are the ids of devices whose commands end with the opposite value.
	Jammed []int64 `json:"jammed,omitempty"`
	// Unreachable are the ids of devices out of the radio's reach.
	Unreachable []int64 `json:"unreachable,omitempty"`
	// LateAnswers delays each response.
	LateAnswers Duration `json:"late_answers,omitempty"`
	// RejectCommands makes the hub answer every command with command_refused.
	RejectCommands bool `json:"refuse_commands,omitempty"`
	// RadioDown cuts the hub off from its devices. Commands are answered with hub_unavailable.
	RadioDown bool `json:"radio_down,omitempty"`
	// ClockUnknown makes the hub's clock start at 2000-01-01 and count as not trusted. Commands are
	// answered with hub_unavailable.
	ClockUnknown bool `json:"clock_unknown,omitempty"`
	// IgnoreWindow makes the hub ignore the limit of unacknowledged events.
	IgnoreWindow bool `json:"heedless,omitempty"`
	// CutEvery is the interval of cut connections; 0 for none.
	CutEvery Duration `json:"cut_every,omitempty"`
	// LoseEvery is the interval at which ten events are lost; 0 for none.
	LoseEvery Duration `json:"lose_every,omitempty"`
	// MalformEvery is the interval at which malformed events are sent, one of each kind; 0 for
	// none.
	MalformEvery Duration `json:"malform_every,omitempty"`
	// ResetEvery is the interval of factory resets; 0 for none.
	ResetEvery Duration `json:"reset_every,omitempty"`
}

// faultNames are the JSON names of the faults.
var faultNames = []string{
	"jammed", "unreachable", "refuse_commands", "late_answers", "radio_down", "clock_unknown",
	"heedless", "cut_every", "lose_every", "malform_every", "reset_every",
}

// Set adds the fault in text: its JSON name, followed by "=" and a value if it has one. Examples
// are "radio_down", "late_answers=3s" and "jammed=1,2".
func (f *Faults) Set(text string) error {
	name, value, given := strings.Cut(text, "=")
	var raw string
	switch name {
	case "jammed", "unreachable":
		for id := range strings.SplitSeq(value, ",") {
			if _, err := strconv.ParseInt(id, 10, 64); err != nil {
				return fmt.Errorf("%s: %q must be a device id", name, id)
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
		return fmt.Errorf("%q is not one of %s", name, strings.Join(faultNames, ", "))
	}
	if err := json.Unmarshal([]byte(`{"`+name+`":`+raw+`}`), f); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func (f Faults) clone() Faults {
	f.Jammed, f.Unreachable = slices.Clone(f.Jammed), slices.Clone(f.Unreachable)
	return f
}

// Faults returns the present faults.
func (c *controller) Faults() Faults {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.faults.clone()
}

// SetFaults calls change on the hub's faults and applies them.
func (c *controller) SetFaults(change func(*Faults)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.faults)
	c.applyFaults()
	c.wake()
}

// applyFaults brings devices, the send window and the clock in line with the faults.
func (c *controller) applyFaults() {
	for _, d := range c.devices {
		d.Jammed = slices.Contains(c.faults.Jammed, d.ID)
	}
	limit := uint64(protocol.MaxUnacknowledged)
	if c.faults.IgnoreWindow {
		limit = 0
	}
	c.engine.SetWindow(limit)
	c.setClock()
	for _, id := range c.faults.Unreachable {
		if d := c.device(id); d != nil {
			c.setAvailable(d, false, time.Now())
		}
	}
}

// bootTime is the clock's time at boot while the hub does not know the time.
var bootTime = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func (c *controller) setClock() {
	if c.faults.ClockUnknown {
		c.engine.SetClock(false, bootTime.Sub(c.booted))
		return
	}
	c.engine.SetClock(true, 0)
}
