package directory

import (
	"context"
	"slices"
	"time"

	"hubcloud/domain"
	"hubcloud/streams"
)

const (
	// forgetWait bounds how long ForgetDevices waits for the read models: a hub's events wait
	// behind it.
	forgetWait = 2 * time.Second
	// forgetBatch is how many devices one decision forgets; their events are stored as one batch.
	forgetBatch = streams.MaxBatch / 2
)

// LabelDevice names and places a device, and gives what is then set for it. That the hub has the
// device is for the caller to know. A hub that the organization does not have is not_found.
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
	hub, seq, err := s.updateHub(
		ctx,
		c.HubID,
		counted(s, o, c.OrgID, func(h domain.HubState) ([]domain.Event, error) {
			return domain.DecideLabelDevice(h, o, c)
		}),
	)
	if err != nil {
		return domain.DeviceLabel{}, err
	}
	s.settled(ctx, seq)
	return hub.Labels[c.DeviceID], nil
}

// ForgetDevices forgets the names and rooms of devices, since their hub has forgotten them; without
// any it does nothing. It waits for the read models for two seconds at most and is content without
// them: what is stored comes into force by itself.
func (s *Service) ForgetDevices(
	ctx context.Context, o domain.Origin, hubID domain.HubID, deviceIDs []int64,
) error {
	o = s.stamp(o)
	var last uint64
	for some := range slices.Chunk(deviceIDs, forgetBatch) {
		forgotten := false
		_, seq, err := s.updateHub(ctx, hubID, func(h domain.HubState) ([]domain.Event, error) {
			events := domain.DecideForgetDevices(h, o, some)
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
	ctx, cancel := context.WithTimeout(ctx, forgetWait)
	defer cancel()
	_ = s.cfg.Settled(ctx, last) // see above
	return nil
}
