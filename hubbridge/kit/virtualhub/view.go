package virtualhub

import (
	"encoding/json"
	"fmt"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/kit/hub"
)

// View returns the device with all its channels and values.
func (d *device) View() hub.Device {
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

// deviceSnapshot is the whole state of a device, for storage.
type deviceSnapshot struct {
	ID        int64              `json:"id"`
	Spec      DeviceSpec         `json:"spec"`
	Available bool               `json:"available"`
	Channels  []channelSnapshot  `json:"channels"`
	Memory    map[string]float64 `json:"memory,omitempty"`
	Actions   []actionSnapshot   `json:"actions,omitempty"`
	Codes     map[int64]lockCode `json:"codes,omitempty"`
}

type channelSnapshot struct {
	ChannelRef
	Value      json.RawMessage      `json:"value"`
	ObservedAt time.Time            `json:"observed_at"`
	Desired    json.RawMessage      `json:"desired"`
	DesiredAt  time.Time            `json:"desired_at"`
	Status     domain.ChannelStatus `json:"status"`
}

type actionSnapshot struct {
	ChannelRef
	Value json.RawMessage `json:"value"`
	Since time.Time       `json:"since"`
	Due   time.Time       `json:"due"`
}

// Snapshot returns the present state of the device.
func (d *device) Snapshot() deviceSnapshot {
	s := deviceSnapshot{ID: d.ID, Spec: d.Spec, Available: d.Available, Memory: d.memory, Codes: d.codes}
	for _, c := range d.Channels {
		s.Channels = append(s.Channels, channelSnapshot{
			ChannelRef: c.ChannelRef, Value: encode(c.Value), ObservedAt: c.ObservedAt,
			Desired: encode(c.Desired), DesiredAt: c.DesiredAt, Status: c.Status,
		})
	}
	for _, a := range d.actions {
		s.Actions = append(
			s.Actions,
			actionSnapshot{ChannelRef: a.ChannelRef, Value: encode(a.Value), Since: a.Since, Due: a.Due},
		)
	}
	return s
}

// restoreDevice makes a device from a snapshot. Pending commands stay pending: the device went on
// while its hub was down. seed must be the one that was given to newDevice.
func restoreDevice(s deviceSnapshot, seed uint64) (*device, error) {
	spec, err := s.Spec.complete()
	if err != nil {
		return nil, err
	}
	d := blank(s.ID, spec, seed)
	d.Available, d.codes = s.Available, s.Codes
	for name, n := range s.Memory {
		d.memory[name] = n
	}
	kindChannels := d.kind.channels(spec)
	for _, kept := range s.Channels {
		for _, c := range kindChannels {
			if c.ChannelRef != kept.ChannelRef {
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
		if d.Channel(kept.ChannelRef) != nil && v != nil {
			d.actions = append(
				d.actions, action{ChannelRef: kept.ChannelRef, Value: v, Since: kept.Since, Due: kept.Due},
			)
		}
	}
	return d, nil
}

func encode(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("device: encode a value of type %T", v))
	}
	return raw
}

// restore decodes a stored value; null is nil.
func restore(key string, raw json.RawMessage) (any, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	return parse(key, raw)
}
