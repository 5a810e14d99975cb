package device

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"hubcloud/domain"
)

// Device is one device on a hub's network. It is not safe for concurrent use.
type Device struct {
	ID       int64
	Spec     Spec
	Channels []*Channel
	// Available is false while the radio cannot reach the device.
	Available bool
	// Jammed makes the device report the other value when a command is to switch it over.
	Jammed bool

	kind kind
	// memory holds what physics knows beside the channels' values.
	memory     map[string]float64
	actions    []action
	nextSample time.Time
	rnd        *rand.Rand
}

// action is a command under way: at due the device is done with it.
type action struct {
	Ref
	Value Value
	Since time.Time
	Due   time.Time
}

// reading is what a device reports of one channel.
type reading struct {
	Ref
	Value Value
}

// Observation is the data of a channel.observed or channel.desired event.
type Observation struct {
	Ref
	Value Value `json:"value"`
}

// Rejection is why a command was not accepted.
type Rejection struct {
	// Type is an error type of the hub link: not_found, invalid_request or command_refused.
	Type    string
	Message string
}

func (r *Rejection) Error() string { return r.Type + ": " + r.Message }

// Surroundings are what a device depends on and cannot know by itself.
type Surroundings struct {
	// Radio is false while the hub's radio is down.
	Radio bool
	// Quiet stops readings that nobody asked for.
	Quiet bool
	// GiveUp is how long the hub tries to reach the device with a command. 0 is 10 s.
	GiveUp time.Duration
}

func (s Surroundings) giveUp() time.Duration {
	if s.GiveUp == 0 {
		return 10 * time.Second
	}
	return s.GiveUp
}

// New makes a device of the given spec that has just joined: its channels have reported their first
// values at now.
func New(id int64, spec Spec, seed uint64, now time.Time) (*Device, error) {
	spec, err := spec.complete()
	if err != nil {
		return nil, err
	}
	d := blank(id, spec, seed)
	d.Available = true
	for _, c := range d.kind.channels(spec) {
		c.ChannelState = domain.NewChannelState(c.Value, now)
		d.Channels = append(d.Channels, &c)
	}
	for name, raw := range spec.Values {
		if err := d.setFirst(name, raw, now); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func blank(id int64, spec Spec, seed uint64) *Device {
	return &Device{
		ID: id, Spec: spec, kind: kinds[spec.Kind], memory: map[string]float64{},
		rnd: rand.New(rand.NewPCG(seed, uint64(id))),
	}
}

func (d *Device) setFirst(name string, raw json.RawMessage, now time.Time) error {
	ref, err := parseRef(name)
	if err != nil {
		return err
	}
	c := d.Channel(ref)
	if c == nil {
		return fmt.Errorf("values: a %s has no channel %s", d.Spec.Kind, ref)
	}
	v, err := parse(ref.Key, raw)
	if err != nil {
		return fmt.Errorf("values: %w", err)
	}
	c.ChannelState = domain.NewChannelState(v, now)
	return nil
}

// Channel finds a channel; nil when the device has no such one.
func (d *Device) Channel(ref Ref) *Channel {
	for _, c := range d.Channels {
		if c.Ref == ref {
			return c
		}
	}
	return nil
}

// Check reads a command without accepting it. The error is a *Rejection.
func (d *Device) Check(ref Ref, raw json.RawMessage) (Value, error) {
	c := d.Channel(ref)
	if c == nil {
		return nil, &Rejection{
			Type:    "not_found",
			Message: fmt.Sprintf("device %d has no channel %s", d.ID, ref),
		}
	}
	v, err := c.accept(raw)
	if err != nil {
		return nil, &Rejection{Type: "invalid_request", Message: err.Error()}
	}
	if d.Spec.Insecure && (ref.Key == "lock" || ref.Key == "barrier") {
		return nil, &Rejection{
			Type:    "command_refused",
			Message: fmt.Sprintf("%s did not join securely enough to be driven", d.Spec.Name),
		}
	}
	return v, nil
}

// Command accepts a command whose value Check has read: the channel is pending, and what comes of
// it shows in a later Advance.
func (d *Device) Command(ref Ref, v Value, now time.Time) (CommandedChannel, Observation) {
	c := d.Channel(ref)
	if i := slices.IndexFunc(d.actions, func(a action) bool { return a.Ref == ref }); i >= 0 {
		if d.kind.interrupt != nil {
			d.kind.interrupt(d, d.actions[i], now)
		}
		d.actions = slices.Delete(d.actions, i, i+1)
	}
	c.ChannelState = c.Commanded(v, now)
	d.actions = append(
		d.actions, action{Ref: ref, Value: v, Since: now, Due: now.Add(d.latency(ref, v))},
	)
	return CommandedChannel{c.head(d.Available), c.state()}, Observation{ref, v}
}

func (d *Device) latency(ref Ref, v Value) time.Duration {
	switch {
	case d.Spec.Latency != 0:
		return time.Duration(d.Spec.Latency)
	case d.kind.delay != nil:
		return d.kind.delay(d, ref, v)
	default:
		return d.kind.latency
	}
}

// Report makes the device report v, as when somebody turns the knob of a lock.
func (d *Device) Report(ref Ref, raw json.RawMessage, now time.Time) ([]Observation, error) {
	if d.Channel(ref) == nil {
		return nil, fmt.Errorf("device %d has no channel %s", d.ID, ref)
	}
	v, err := parse(ref.Key, raw)
	if err != nil {
		return nil, err
	}
	return d.take([]reading{{ref, v}}, now), nil
}

// First is what a device that has just joined has reported: an observation for each channel with a
// value.
func (d *Device) First() []Observation {
	var out []Observation
	for _, c := range d.Channels {
		if c.Value != nil {
			out = append(out, Observation{c.Ref, c.Value})
		}
	}
	return out
}

// Remove takes channels away that the device no longer has, and returns those that it had.
func (d *Device) Remove(refs ...Ref) []Ref {
	removed := []Ref{}
	for _, ref := range refs {
		if d.Channel(ref) == nil {
			continue
		}
		removed = append(removed, ref)
		d.Channels = slices.DeleteFunc(d.Channels, func(c *Channel) bool { return c.Ref == ref })
		d.actions = slices.DeleteFunc(d.actions, func(a action) bool { return a.Ref == ref })
	}
	return removed
}
