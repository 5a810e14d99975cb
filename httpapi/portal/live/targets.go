package live

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"hubcloud/domain"
)

const (
	// targetsTimeout bounds the questions of FindTargets.
	targetsTimeout = 5 * time.Second
	// concurrentHubs is how many hubs FindTargets and SendAll talk to at once.
	concurrentHubs = 16
	// settleTime is how long SendAll waits for devices after their hubs accepted the commands.
	settleTime = 4 * time.Second
	// settlePause is how long SendAll waits between two questions to a hub about a device.
	settlePause = 400 * time.Millisecond
)

// Target is a channel that can be set.
type Target struct {
	Hub        domain.HubID
	DeviceID   int64
	Endpoint   int64
	Name, Room string
	// Available reports whether the hub reaches the device.
	Available bool
}

// Targets are the channels with one key of several hubs.
type Targets struct {
	Targets []Target
	// Failed has the errors of the hubs that did not return their devices.
	Failed map[domain.HubID]error
}

// SiteStates returns the states of the hubs at a site.
func (l *Live) SiteStates(ctx context.Context, org, site string) ([]HubState, error) {
	return l.readStates(ctx, org, &site)
}

// FindTargets asks hubs for their writable channels with that key. It waits at most five seconds.
func (l *Live) FindTargets(
	ctx context.Context, org string, hubs []domain.HubID, key string,
) (Targets, error) {
	found := Targets{Failed: map[domain.HubID]error{}}
	hubCtx, cancel := context.WithTimeout(ctx, targetsTimeout)
	defer cancel()
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(concurrentHubs)
	for _, hub := range hubs {
		group.Go(func() error {
			labels, err := l.cfg.ReadModels.DeviceLabels(ctx, org, hub)
			if err != nil {
				return err
			}
			listed, err := l.cfg.Devices.List(hubCtx, hub)
			mu.Lock()
			defer mu.Unlock()
			if hubCtx.Err() != nil && ctx.Err() == nil {
				err = domain.Errorf(domain.CodeHubTimeout, "the hub did not answer in time")
			}
			if err != nil {
				found.Failed[hub] = err
				return nil
			}
			for _, d := range listed {
				device := deviceOf(hub, d, labels[d.ID])
				found.Targets = append(found.Targets, targetsOf(d, device, key)...)
			}
			return nil
		})
	}
	err := group.Wait()
	return found, err
}

// targetsOf returns the writable channels of a device with that key.
func targetsOf(d domain.Device, device Device, key string) (targets []Target) {
	for _, c := range d.Channels {
		if c.Key != key || !c.Writable {
			continue
		}
		target := Target{
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

// Sender sends commands to hubs.
type Sender interface {
	// Send sends a command to its hub and returns the channel state from the hub's answer.
	Send(ctx context.Context, o domain.Origin, command domain.Command) (domain.Channel, error)
}

// Send is a command of several that are sent together.
type Send struct {
	Target  Target
	Command domain.Command
}

// SendResult is the result of a command.
type SendResult struct {
	// Err is the rejection of the command; nil if the hub accepted it.
	Err error
	// Outcome is what the device did: done, pending, not done or failed. Value is then the
	// displayed value of the channel.
	Outcome Outcome
	Value   string
}

var errSkipped = errors.New("not sent: the hub did not answer the command before")

// IsSkipped reports whether a command was not sent because its hub does not answer.
func IsSkipped(err error) bool { return errors.Is(err, errSkipped) }

// SendAll sends commands, to several hubs at once and to each hub in order, and returns their
// results in the same order. A hub that does not answer a command gets no further ones. SendAll
// then waits some seconds for what the devices report.
func (l *Live) SendAll(
	ctx context.Context, sender Sender, o domain.Origin, sends []Send,
) []SendResult {
	results := make([]SendResult, len(sends))
	byHub := map[domain.HubID][]int{}
	for i, send := range sends {
		byHub[send.Target.Hub] = append(byHub[send.Target.Hub], i)
	}
	var hubs errgroup.Group
	hubs.SetLimit(concurrentHubs)
	for _, indexes := range byHub {
		hubs.Go(func() error {
			l.sendToHub(ctx, sender, o, sends, results, indexes)
			return nil
		})
	}
	_ = hubs.Wait() // failures are in the results
	return results
}

// sendToHub sends the commands of one hub, and waits for their outcomes.
func (l *Live) sendToHub(
	ctx context.Context, sender Sender, o domain.Origin, sends []Send, results []SendResult,
	indexes []int,
) {
	for at, i := range indexes {
		_, err := sender.Send(ctx, o, sends[i].Command)
		if results[i].Err = err; err == nil {
			results[i].Outcome = OutcomePending
			continue
		}
		switch domain.CodeOf(err) {
		case domain.CodeHubTimeout, domain.CodeHubError:
			for _, rest := range indexes[at+1:] {
				results[rest].Err = errSkipped
			}
		case domain.CodeHubOffline, domain.CodeHubUnavailable:
			for _, rest := range indexes[at+1:] {
				results[rest].Err = err
			}
		default:
			continue
		}
		break
	}
	settleCtx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	for {
		waiting := false
		for _, i := range indexes {
			if results[i].Err == nil && results[i].Outcome == OutcomePending {
				results[i] = l.settle(settleCtx, sends[i], results[i])
				waiting = waiting || results[i].Outcome == OutcomePending
			}
		}
		if !waiting {
			return
		}
		select {
		case <-settleCtx.Done():
			return
		case <-time.After(settlePause):
		}
	}
}

// settle asks a hub for what a device made of a command. Without an answer the command is still
// pending.
func (l *Live) settle(ctx context.Context, send Send, before SendResult) SendResult {
	device, err := l.cfg.Devices.Get(ctx, send.Target.Hub, send.Target.DeviceID)
	if err != nil {
		return before
	}
	for _, c := range device.Channels {
		if c.Key != send.Command.Key || c.Endpoint != send.Command.Endpoint {
			continue
		}
		return settledOutcome(c, send.Command.Value)
	}
	return before
}

// settledOutcome returns the outcome of a command from the state of its channel.
func settledOutcome(c domain.Channel, wanted json.RawMessage) SendResult {
	unit := ""
	if c.Unit != nil {
		unit = *c.Unit
	}
	result := SendResult{Outcome: OutcomePending, Value: formatValue(c.Key, unit, c.Value)}
	switch {
	case sameValue(c.Value, wanted), c.Status == domain.ChannelSynchronized:
		result.Outcome = OutcomeDone
	case c.Status == domain.ChannelDiverged:
		result.Outcome = OutcomeNotDone
	case c.Status == domain.ChannelFailed:
		result.Outcome = OutcomeFailed
	}
	return result
}
