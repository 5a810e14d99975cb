package directory

import (
	"context"
	"slices"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/jsapi"
)

const (
	// forgetTimeout bounds how long ForgetDevices waits for the read models. The hub's next events
	// wait for ForgetDevices.
	forgetTimeout = 2 * time.Second
	// devicesBatch is how many devices one decision changes. Its events are stored as one batch.
	devicesBatch = jsapi.MaxBatch / 2
)

// LabelDevice sets the name and the room of a device, and returns its new label. The caller has
// checked that the hub has the device. It returns not_found for a hub that the organization does
// not have.
func (s *Service) LabelDevice(
	ctx context.Context, o domain.Origin, c domain.LabelDevice,
) (domain.DeviceLabel, error) {
	var err error
	if c.Name, err = cleanOptional("name", c.Name); err != nil {
		return domain.DeviceLabel{}, err
	}
	if c.Room, err = cleanOptional("room", c.Room); err != nil {
		return domain.DeviceLabel{}, err
	}
	o = s.stamp(o)
	decide := func(h domain.HubState) ([]domain.Event, error) {
		return domain.DecideLabelDevice(h, o, c)
	}
	hub, seq, err := s.updateHub(ctx, c.HubID, limitChanges(s, o, c.OrgID, decide))
	if err != nil {
		return domain.DeviceLabel{}, err
	}
	s.awaitReadable(ctx, seq)
	return hub.Labels[c.DeviceID], nil
}

// PlaceDevices sets the room of devices of hubs; "" clears it. Each hub is one change, in any order:
// after an error some may have changed. The caller has checked that the hubs have the devices.
func (s *Service) PlaceDevices(
	ctx context.Context, o domain.Origin, org string, devices map[domain.HubID][]int64, room string,
) error {
	var name *string
	if room != "" {
		cleaned, err := domain.CleanName("room", room)
		if err != nil {
			return err
		}
		name = &cleaned
	}
	o = s.stamp(o)
	var last uint64
	for hub, ids := range devices {
		slices.Sort(ids)
		for batch := range slices.Chunk(slices.Compact(ids), devicesBatch) {
			decide := func(h domain.HubState) ([]domain.Event, error) {
				return domain.DecidePlaceDevices(h, o, org, batch, name)
			}
			_, seq, err := s.updateHub(ctx, hub, limitChanges(s, o, org, decide))
			if err != nil {
				return err
			}
			last = max(last, seq)
		}
	}
	if last > 0 {
		s.awaitReadable(ctx, last)
	}
	return nil
}

// ForgetDevices removes the names and rooms of devices that their hub has forgotten. It waits at
// most two seconds for the read models, and succeeds even if they lag.
func (s *Service) ForgetDevices(
	ctx context.Context, o domain.Origin, hubID domain.HubID, deviceIDs []int64,
) error {
	o = s.stamp(o)
	var last uint64
	for batch := range slices.Chunk(deviceIDs, devicesBatch) {
		forgotten := false
		_, seq, err := s.updateHub(ctx, hubID, func(h domain.HubState) ([]domain.Event, error) {
			events := domain.DecideForgetDevices(h, o, batch)
			forgotten = len(events) > 0
			return events, nil
		})
		if err != nil {
			return err
		}
		if forgotten {
			last = seq
		}
	}
	if last == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, forgetTimeout)
	defer cancel()
	_ = s.cfg.AwaitReadModels(ctx, last) // stored already, readable later
	return nil
}
