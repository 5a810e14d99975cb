package live

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"golang.org/x/sync/errgroup"

	"hubcloud/domain"
)

const (
	// outcomeEvents bounds the events that are read in search of a command's outcome.
	outcomeEvents = 1000
	// outcomePage is how many of them are read at once.
	outcomePage = 100
	// concurrentOutcomes is how many outcomes are searched at once.
	concurrentOutcomes = 8
)

// Outcome is what a device did after its hub accepted a command.
type Outcome string

// The outcomes of a command. An unknown outcome is one that too many other events follow or
// precede, or that could not be read in time.
const (
	OutcomeUnknown  Outcome = ""
	OutcomeDone     Outcome = "done"
	OutcomePending  Outcome = "pending"
	OutcomeNotDone  Outcome = "not done"
	OutcomeFailed   Outcome = "failed" // the hub gave up
	OutcomeJammed   Outcome = "jammed"
	OutcomeReplaced Outcome = "replaced" // by the next command of the channel
	OutcomeNone     Outcome = "no answer"
)

// Outcomes returns the outcome of each command, from the event logs of their hubs, and the value
// that the device reported instead if the outcome is OutcomeNotDone or OutcomeJammed. It searches
// until ctx ends.
func (l *Live) Outcomes(
	ctx context.Context, commands []domain.CommandRecord,
) (outcomes []Outcome, reported []json.RawMessage) {
	outcomes = make([]Outcome, len(commands))
	reported = make([]json.RawMessage, len(commands))
	var searches errgroup.Group
	searches.SetLimit(concurrentOutcomes)
	for i, command := range commands {
		if command.Outcome != "accepted" {
			continue
		}
		searches.Go(func() error {
			outcome, value, err := l.outcomeOf(ctx, command)
			if err == nil {
				outcomes[i], reported[i] = outcome, value
			}
			return nil
		})
	}
	_ = searches.Wait() // without its events the outcome of a command stays unknown
	return outcomes, reported
}

// outcomeOf searches the reports that follow a command until one has the wanted value, or the next
// command of the channel.
func (l *Live) outcomeOf(
	ctx context.Context, command domain.CommandRecord,
) (outcome Outcome, reported json.RawMessage, err error) {
	after, err := l.cfg.Events.At(ctx, command.HubID, command.At)
	if err != nil {
		return OutcomeUnknown, nil, err
	}
	deviceField := fmt.Appendf(nil, `"device_id":%d,`, command.DeviceID)
	asked, jammed := false, false
	for read := 0; read < outcomeEvents; {
		page, err := l.cfg.Events.Page(ctx, command.HubID, after, outcomePage)
		if err != nil {
			return OutcomeUnknown, nil, err
		}
		for _, encoded := range page.Events {
			if !bytes.Contains(encoded.Envelope, deviceField) {
				continue
			}
			event, ok := decode(encoded)
			if !ok || !event.isOf(command.DeviceID) {
				continue
			}
			var of channelEvent
			if json.Unmarshal(event.Data, &of) != nil {
				continue
			}
			own := of.Key == command.Key && of.Endpoint == command.Endpoint
			switch {
			case event.Type == "channel.desired" && own && asked:
				if reported == nil {
					return OutcomeReplaced, nil, nil
				}
				return unsuccessful(jammed), reported, nil
			case event.Type == "channel.desired" && own:
				asked = true
			case event.Type != "channel.observed" || !asked:
			case own && sameValue(of.Value, command.Value):
				return OutcomeDone, nil, nil
			case own:
				reported = of.Value
			case of.Key == "alarm" && reported != nil && bytes.Contains(of.Value, []byte(`"jammed"`)):
				jammed = true
			}
		}
		after = page.Next
		if read += len(page.Events); !page.HasMore {
			break
		}
		if read >= outcomeEvents && reported == nil {
			return OutcomeUnknown, nil, nil
		}
	}
	switch {
	case reported != nil:
		return unsuccessful(jammed), reported, nil
	case l.cfg.Now().Sub(command.At) < outcomeTime:
		return OutcomePending, nil, nil
	}
	return OutcomeNone, nil, nil
}

func unsuccessful(jammed bool) Outcome {
	if jammed {
		return OutcomeJammed
	}
	return OutcomeNotDone
}

// sameValue reports whether a reported value is what a command asked for. Fields of an object that
// the command does not have may have any value.
func sameValue(reported, wanted json.RawMessage) bool {
	var a, b any
	if json.Unmarshal(reported, &a) != nil || json.Unmarshal(wanted, &b) != nil {
		return false
	}
	fields, ok := b.(map[string]any)
	of, both := a.(map[string]any)
	if !ok || !both {
		return reflect.DeepEqual(a, b)
	}
	for name, value := range fields {
		if !reflect.DeepEqual(of[name], value) {
			return false
		}
	}
	return true
}

// NamesOf returns the names of the devices of hubs, by hub and device id. Hubs that do not answer
// in time have only the names that members set.
func (l *Live) NamesOf(
	ctx context.Context, org string, hubs []domain.HubID, timeout time.Duration,
) (map[domain.HubID]map[int64]string, error) {
	names := make([]map[int64]string, len(hubs))
	hubCtx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var requests errgroup.Group
	requests.SetLimit(concurrentDevices)
	for i, hub := range hubs {
		requests.Go(func() (err error) {
			if names[i], err = l.DeviceNames(hubCtx, org, hub); err != nil {
				names[i], err = l.LabelNames(ctx, org, hub)
			}
			return err
		})
	}
	if err := requests.Wait(); err != nil {
		return nil, err
	}
	named := map[domain.HubID]map[int64]string{}
	for i, hub := range hubs {
		named[hub] = names[i]
	}
	return named, nil
}
