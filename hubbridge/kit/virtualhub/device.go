package virtualhub

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/kit/hub"
)

// device is one device on a hub's network. It is not safe for concurrent use.
type device struct {
	ID       int64
	Spec     DeviceSpec
	Channels []*channel
	// Available is false while the radio cannot reach the device.
	Available bool
	// Jammed makes boolean commands end with the opposite value and an alarm.
	Jammed bool

	kind kind
	// memory is the state of the physics besides the channels' values.
	memory map[string]float64
	// codes are the codes of a lock, by slot.
	codes      map[int64]lockCode
	actions    []action
	nextSample time.Time
	rnd        *rand.Rand
}

// action is a pending command. The device carries it out at Due.
type action struct {
	ChannelRef
	Value any
	Since time.Time
	Due   time.Time
}

// reading is a value that a device reports for one of its channels.
type reading struct {
	ChannelRef
	Value any
}

// observation is the data of a channel.observed event. With Failed it is instead that the hub has
// given up the command of the channel.
type observation struct {
	ChannelRef
	Value  any  `json:"value"`
	Failed bool `json:"-"`
}

// surroundings is the state of the hub that affects its devices.
type surroundings struct {
	// Radio is false while the hub's radio is down.
	Radio bool
	// Quiet disables readings that no command or report caused.
	Quiet bool
	// GiveUp is how long the hub tries to reach the device with a command. Defaults to 10 s.
	GiveUp time.Duration
}

func (s surroundings) giveUp() time.Duration {
	if s.GiveUp == 0 {
		return 10 * time.Second
	}
	return s.GiveUp
}

// newDevice makes a device that has just joined: its channels have reported their first values at
// now. It returns an error for an invalid spec. Devices with the same id and seed behave the same.
func newDevice(id int64, spec DeviceSpec, seed uint64, now time.Time) (*device, error) {
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

func blank(id int64, spec DeviceSpec, seed uint64) *device {
	return &device{
		ID: id, Spec: spec, kind: kinds[spec.Kind], memory: map[string]float64{},
		rnd: rand.New(rand.NewPCG(seed, uint64(id))),
	}
}

func (d *device) setFirst(name string, raw json.RawMessage, now time.Time) error {
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

// channel returns the channel with the given ref, or nil.
func (d *device) Channel(ref ChannelRef) *channel {
	for _, c := range d.Channels {
		if c.ChannelRef == ref {
			return c
		}
	}
	return nil
}

// Check decodes and validates the value of a command without running it. Its errors are *hub.Error.
func (d *device) Check(ref ChannelRef, raw json.RawMessage) (any, error) {
	c := d.Channel(ref)
	if c == nil {
		return nil, hub.Errorf(hub.ErrorNotFound, "device %d has no channel %s", d.ID, ref)
	}
	v, err := c.parseCommand(raw)
	if err != nil {
		return nil, hub.Errorf(hub.ErrorInvalidRequest, "%v", err)
	}
	if d.Spec.Insecure && (ref.Key == "lock" || ref.Key == "barrier") {
		return nil, hub.Errorf(
			hub.ErrorCommandRefused, "%s did not join securely: it rejects commands", d.Spec.Name,
		)
	}
	return v, nil
}

// Command starts a command with a value from Check. It returns the channel, which is pending. The
// outcome comes from a later Advance.
func (d *device) Command(ref ChannelRef, v any, now time.Time) hub.Channel {
	c := d.Channel(ref)
	if i := slices.IndexFunc(d.actions, func(a action) bool { return a.ChannelRef == ref }); i >= 0 {
		if d.kind.interrupt != nil {
			d.kind.interrupt(d, d.actions[i], now)
		}
		d.actions = slices.Delete(d.actions, i, i+1)
	}
	c.ChannelState = c.Commanded(v, now)
	d.actions = append(
		d.actions, action{ChannelRef: ref, Value: v, Since: now, Due: d.awake(now).Add(d.latency(ref, v))},
	)
	return c.view(d.Available)
}

// awake returns when a device is awake next: now, unless it sleeps.
func (d *device) awake(now time.Time) time.Time {
	every := time.Duration(d.Spec.WakesEvery)
	if every <= 0 {
		return now
	}
	return now.Truncate(every).Add(every)
}

func (d *device) latency(ref ChannelRef, v any) time.Duration {
	switch {
	case d.Spec.Latency != 0:
		return time.Duration(d.Spec.Latency)
	case d.kind.delay != nil:
		return d.kind.delay(d, ref, v)
	default:
		return d.kind.latency
	}
}

// Report makes the device report a value, as if a person turned the knob of a lock. It returns the
// observations for the cloud.
func (d *device) Report(ref ChannelRef, raw json.RawMessage, now time.Time) ([]observation, error) {
	if d.Channel(ref) == nil {
		return nil, fmt.Errorf("device %d has no channel %s", d.ID, ref)
	}
	v, err := parse(ref.Key, raw)
	if err != nil {
		return nil, err
	}
	return d.update([]reading{{ref, v}}, now), nil
}

// First returns the observations of a device that has just joined: one for each channel with a
// value.
func (d *device) First() []observation {
	var out []observation
	for _, c := range d.Channels {
		if c.Value != nil {
			out = append(out, observation{ChannelRef: c.ChannelRef, Value: c.Value})
		}
	}
	return out
}

// Remove removes channels from the device and returns the refs that the device had.
func (d *device) Remove(refs ...ChannelRef) []ChannelRef {
	removed := []ChannelRef{}
	for _, ref := range refs {
		if d.Channel(ref) == nil {
			continue
		}
		removed = append(removed, ref)
		d.Channels = slices.DeleteFunc(d.Channels, func(c *channel) bool { return c.ChannelRef == ref })
		d.actions = slices.DeleteFunc(d.actions, func(a action) bool { return a.ChannelRef == ref })
	}
	return removed
}
