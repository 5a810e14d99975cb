package portal

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"hubcloud/domain"
)

const (
	// targetsTimeout bounds the questions of findTargets.
	targetsTimeout = 5 * time.Second
	// concurrentHubs is how many hubs findTargets and eachHub talk to at once.
	concurrentHubs = 16
)

// target is a channel that can be set.
type target struct {
	Hub        domain.HubID
	DeviceID   int64
	Endpoint   int64
	Name, Room string
	// Available reports whether the hub reaches the device.
	Available bool
	// State is the displayed value that the device reported last, "" if it is not known. Pending is
	// the text of a command that is under way, "" for none.
	State, Pending string
	// ReportedAt is when a device whose hub does not answer reported its state; else zero.
	ReportedAt time.Time
}

// foundTargets are the channels with one key of several hubs.
type foundTargets struct {
	Targets []target
	// Failed has the errors of the hubs that did not return their devices.
	Failed map[domain.HubID]error
}

// findTargets asks hubs for their writable channels with that key and, if states is set, for what
// these have reported. It waits at most five seconds.
func (p *Portal) findTargets(
	ctx context.Context, org string, hubs []domain.HubID, key string, states bool,
) (foundTargets, error) {
	found := foundTargets{Failed: map[domain.HubID]error{}}
	hubCtx, cancel := context.WithTimeout(ctx, targetsTimeout)
	defer cancel()
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(concurrentHubs)
	for _, hub := range hubs {
		group.Go(func() error {
			labels, err := p.ReadModels.DeviceLabels(ctx, org, hub)
			if err != nil {
				return err
			}
			listed, err := p.Devices.List(hubCtx, hub)
			if err != nil && hubCtx.Err() != nil && ctx.Err() == nil {
				err = domain.Errorf(domain.CodeHubTimeout, "the hub did not answer in time")
			}
			var targets []target
			for _, d := range listed {
				targets = append(targets, targetsOf(d, deviceOf(hub, d, labels[d.ID]), key)...)
			}
			if states {
				p.readStatesOf(hubCtx, targets, key)
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				found.Failed[hub] = err
				return nil
			}
			found.Targets = append(found.Targets, targets...)
			return nil
		})
	}
	err := group.Wait()
	return found, err
}

// targetsOf returns the writable channels of a device with that key.
func targetsOf(d domain.Device, device hubDevice, key string) (targets []target) {
	for _, c := range d.Channels {
		if c.Key != key || !c.Writable {
			continue
		}
		target := target{
			Hub: device.Hub, DeviceID: device.ID, Endpoint: c.Endpoint, Name: device.Name,
			Room: device.Room, Available: c.Available,
		}
		if hasSeveral(d.Channels, key) {
			target.Name += " " + formatInt(c.Endpoint)
		}
		targets = append(targets, target)
	}
	return targets
}

// lastTargets returns the channels of a hub with that key, with what they reported last; none while
// the read models are being built.
func (p *Portal) lastTargets(
	ctx context.Context, org string, hub domain.HubID, key string,
) (targets []target, err error) {
	devices, err := p.lastDevices(ctx, org, hub)
	for _, d := range devices {
		for _, c := range d.Channels {
			if c.Key != key {
				continue
			}
			target := target{
				Hub: hub, DeviceID: d.ID, Endpoint: c.Endpoint, Name: d.Name, Room: d.Room,
				Available: true, State: c.Text, ReportedAt: c.ObservedAt,
			}
			if slices.ContainsFunc(d.Channels, func(other deviceChannel) bool {
				return other.Key == key && other.Endpoint != c.Endpoint
			}) {
				target.Name += " " + formatInt(c.Endpoint)
			}
			targets = append(targets, target)
		}
	}
	return targets, err
}

// readStatesOf asks a hub for what its channels of an action report. Without an answer the states
// stay unknown.
func (p *Portal) readStatesOf(ctx context.Context, targets []target, key string) {
	var requests errgroup.Group
	requests.SetLimit(concurrentDevices)
	for i := range targets {
		requests.Go(func() error {
			target := &targets[i]
			device, err := p.Devices.Get(ctx, target.Hub, target.DeviceID)
			if c, ok := findChannel(device, key, target.Endpoint); ok && err == nil {
				view := channelOf(target.Hub, target.DeviceID, c, false)
				target.State, target.Available = view.Text, c.Available
				if c.Status == domain.ChannelPending {
					target.Pending = view.StatusTag
				}
			}
			return nil
		})
	}
	_ = requests.Wait() // failures leave the states unknown
}

// findChannel returns a channel of a device.
func findChannel(d domain.Device, key string, endpoint int64) (c domain.Channel, ok bool) {
	i := slices.IndexFunc(d.Channels, func(c domain.Channel) bool {
		return c.Key == key && c.Endpoint == endpoint
	})
	if i < 0 {
		return domain.Channel{}, false
	}
	return d.Channels[i], true
}
