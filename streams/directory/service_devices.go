package directory

import (
	"context"
	"time"

	"hubcloud/domain"
)

// forgetWait bounds how long ForgetDevice waits for the read models: a hub's events wait behind it.
const forgetWait = 2 * time.Second

// LabelDevice names and places a device, and gives what is then set for it. That the hub has the device is for the caller to know. A hub
// that the organization does not have is not_found.
func (s *Service) LabelDevice(ctx context.Context, o domain.Origin, c domain.LabelDevice) (domain.DeviceLabel, error) {
	var err error
	if c.Name, err = cleanOptional("name", c.Name); err != nil {
		return domain.DeviceLabel{}, err
	}
	if c.Room, err = cleanOptional("room", c.Room); err != nil {
		return domain.DeviceLabel{}, err
	}
	o = s.stamp(o)
	hub, seq, err := s.updateHub(ctx, c.HubID, func(h domain.HubState) ([]domain.Event, error) {
		return domain.DecideLabelDevice(h, o, c)
	})
	if err != nil {
		return domain.DeviceLabel{}, err
	}
	return hub.Labels[c.DeviceID], s.settled(ctx, seq)
}

// ForgetDevice forgets the name and room of a device, since its hub has forgotten the device; without any it does nothing. It waits for the read
// models for two seconds at most and is content without them: what is stored comes into force by itself.
func (s *Service) ForgetDevice(ctx context.Context, o domain.Origin, hubID domain.HubID, deviceID int64) error {
	o = s.stamp(o)
	forgotten := false
	_, seq, err := s.updateHub(ctx, hubID, func(h domain.HubState) ([]domain.Event, error) {
		events := domain.DecideForgetDevice(h, o, deviceID)
		forgotten = len(events) > 0
		return events, nil
	})
	if err != nil || !forgotten {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, forgetWait)
	defer cancel()
	_ = s.cfg.Settled(ctx, seq) // see above
	return nil
}
