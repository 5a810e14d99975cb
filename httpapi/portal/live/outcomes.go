package live

import (
	"context"
	"encoding/json"
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
// precede, or that could not be read in time. OutcomeOther is another number than the one that was
// asked, which may be the nearest that the device can take.
const (
	OutcomeUnknown  Outcome = ""
	OutcomeDone     Outcome = "done"
	OutcomePending  Outcome = "pending"
	OutcomeNotDone  Outcome = "not done"
	OutcomeOther    Outcome = "other"
	OutcomeFailed   Outcome = "failed" // the hub gave up
	OutcomeJammed   Outcome = "jammed"
	OutcomeReplaced Outcome = "replaced" // by the next command of the channel
	OutcomeNone     Outcome = "no answer"
)

// Outcomes returns the outcome of each command, from the event logs of their hubs, and the value
// that the device reported instead if the outcome is OutcomeNotDone, OutcomeOther or OutcomeJammed.
// It searches until ctx ends.
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
				outcomes[i], reported[i] = l.judge(ctx, command, outcome, value), value
			}
			return nil
		})
	}
	_ = searches.Wait() // without its events the outcome of a command stays unknown
	return outcomes, reported
}

// outcomeOf searches a hub's log for the outcome of a command: only what follows the record of the
// command in the log counts.
func (l *Live) outcomeOf(
	ctx context.Context, command domain.CommandRecord,
) (outcome Outcome, reported json.RawMessage, err error) {
	search := newOutcomeSearch(command.DeviceID, command.Key, command.Endpoint, command.Value)
	after, more := command.Position, true
	for read := 0; more && !search.final && read < outcomeEvents; {
		page, err := l.cfg.Events.Page(ctx, command.HubID, after, outcomePage)
		if err != nil {
			return OutcomeUnknown, nil, err
		}
		for _, event := range page.Events {
			search.take(event)
		}
		read += len(page.Events)
		after, more = page.Next, page.HasMore
	}
	switch {
	case search.outcome != OutcomePending:
		return search.outcome, search.reported, nil
	case more:
		return OutcomeUnknown, nil, nil
	case l.cfg.Now().Sub(command.At) < outcomeTime:
		return OutcomePending, nil, nil
	}
	return OutcomeNone, nil, nil
}

// judge returns the outcome of a command after which another number was reported: it is done if the
// number is the nearest that the device can take. The resolution of the channel tells it, or the
// hub's own status while both are the last.
func (l *Live) judge(
	ctx context.Context, command domain.CommandRecord, outcome Outcome, reported json.RawMessage,
) Outcome {
	asked, isNumber := domain.JSONNumber(command.Value)
	got, isOther := domain.JSONNumber(reported)
	if outcome != OutcomeNotDone || !isNumber || !isOther {
		return outcome
	}
	state := l.lastState(ctx, command)
	step := domain.Resolution(command.Key, state.Channel.Capabilities)
	isLast := state.Certain && sameValue(state.Channel.Desired, command.Value) &&
		sameValue(state.Channel.Value, reported)
	switch {
	case step > 0 && domain.IsNearest(asked, got, step),
		isLast && state.Channel.Status == domain.ChannelSynchronized:
		return OutcomeDone
	case step > 0, isLast:
		return OutcomeNotDone
	}
	return OutcomeOther
}

// lastState returns the last reported state of a command's channel, the zero state if none is known.
func (l *Live) lastState(
	ctx context.Context, command domain.CommandRecord,
) (state domain.ReportedState) {
	if l.cfg.States == nil {
		return state
	}
	page, err := l.cfg.States.States(
		ctx, command.OrgID, domain.StateFilter{HubID: &command.HubID, Key: &command.Key}, lastStates,
		domain.StatePosition{},
	)
	if err != nil {
		return state // the outcome is shown without it
	}
	for _, s := range page.Data {
		if s.DeviceID == command.DeviceID && s.Channel.Key == command.Key &&
			s.Channel.Endpoint == command.Endpoint {
			return s
		}
	}
	return state
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
