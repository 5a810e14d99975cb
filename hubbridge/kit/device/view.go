package device

import (
	"encoding/json"
	"fmt"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/kit/hub"
)

// View returns the device with all its channels and values.
func (d *Device) View() hub.Device {
	v := hub.Device{
		ID: d.ID, Name: d.Spec.Name, Manufacturer: d.Spec.Manufacturer, Model: d.Spec.Model,
	}
	if d.Spec.WakesEvery > 0 {
		v.WakesAt = d.awake(time.Now())
	}
	for _, c := range d.Channels {
		v.Channels = append(v.Channels, c.view(d.Available))
	}
	return v
}

// Snapshot is the whole state of a device, for storage.
type Snapshot struct {
	ID        int64              `json:"id"`
	Spec      Spec               `json:"spec"`
	Available bool               `json:"available"`
	Channels  []channelSnapshot  `json:"channels"`
	Memory    map[string]float64 `json:"memory,omitempty"`
	Actions   []actionSnapshot   `json:"actions,omitempty"`
}

type channelSnapshot struct {
	Ref
	Value      json.RawMessage      `json:"value"`
	ObservedAt time.Time            `json:"observed_at"`
	Desired    json.RawMessage      `json:"desired"`
	DesiredAt  time.Time            `json:"desired_at"`
	Status     domain.ChannelStatus `json:"status"`
}

type actionSnapshot struct {
	Ref
	Value json.RawMessage `json:"value"`
	Since time.Time       `json:"since"`
	Due   time.Time       `json:"due"`
}

// Snapshot returns the present state of the device.
func (d *Device) Snapshot() Snapshot {
	s := Snapshot{ID: d.ID, Spec: d.Spec, Available: d.Available, Memory: d.memory}
	for _, c := range d.Channels {
		s.Channels = append(s.Channels, channelSnapshot{
			Ref: c.Ref, Value: encode(c.Value), ObservedAt: c.ObservedAt,
			Desired: encode(c.Desired), DesiredAt: c.DesiredAt, Status: c.Status,
		})
	}
	for _, a := range d.actions {
		s.Actions = append(
			s.Actions,
			actionSnapshot{Ref: a.Ref, Value: encode(a.Value), Since: a.Since, Due: a.Due},
		)
	}
	return s
}

// Restore makes a device from a snapshot. Pending commands stay pending: the device went on while
// its hub was down. seed must be the one that was given to New.
func Restore(s Snapshot, seed uint64) (*Device, error) {
	spec, err := s.Spec.complete()
	if err != nil {
		return nil, err
	}
	d := blank(s.ID, spec, seed)
	d.Available = s.Available
	for name, n := range s.Memory {
		d.memory[name] = n
	}
	kindChannels := d.kind.channels(spec)
	for _, kept := range s.Channels {
		for _, c := range kindChannels {
			if c.Ref != kept.Ref {
				continue
			}
			if c.Value, err = restore(c.Key, kept.Value); err != nil {
				return nil, fmt.Errorf("device %d: %w", s.ID, err)
			}
			if c.Desired, err = restore(c.Key, kept.Desired); err != nil {
				return nil, fmt.Errorf("device %d: %w", s.ID, err)
			}
			c.ObservedAt, c.DesiredAt, c.Status = kept.ObservedAt, kept.DesiredAt, kept.Status
			d.Channels = append(d.Channels, &c)
		}
	}
	for _, kept := range s.Actions {
		v, err := restore(kept.Key, kept.Value)
		if err != nil {
			return nil, fmt.Errorf("device %d: %w", s.ID, err)
		}
		if d.Channel(kept.Ref) != nil && v != nil {
			d.actions = append(
				d.actions, action{Ref: kept.Ref, Value: v, Since: kept.Since, Due: kept.Due},
			)
		}
	}
	return d, nil
}

func encode(v Value) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("device: encode a value of type %T", v))
	}
	return raw
}

// restore decodes a stored value; null is nil.
func restore(key string, raw json.RawMessage) (Value, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	return parse(key, raw)
}
