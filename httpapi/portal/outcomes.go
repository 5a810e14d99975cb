package portal

import (
	"context"
	"encoding/json"

	"golang.org/x/sync/errgroup"

	"hubcloud/domain"
)

const (
	// outcomeEvents bounds the events that are read in search of a command's outcome.
	outcomeEvents = 1000
	// outcomePage is how many of them are read at once.
	outcomePage = 100
	// concurrentOutcomes is how many hubs' logs are searched at once.
	concurrentOutcomes = 8
)

// commandOutcome is what a device did after its hub accepted a command.
type commandOutcome string

// The outcomes of a command. An unknown outcome is one that too many other events follow or
// precede, or that could not be read in time. outcomeOther is another number than the one that was
// asked, which may be the nearest that the device can take.
const (
	outcomeUnknown  commandOutcome = ""
	outcomeDone     commandOutcome = "done"
	outcomePending  commandOutcome = "pending"
	outcomeNotDone  commandOutcome = "not done"
	outcomeOther    commandOutcome = "other"
	outcomeFailed   commandOutcome = "failed" // the hub gave up
	outcomeJammed   commandOutcome = "jammed"
	outcomeReplaced commandOutcome = "replaced" // by the next command of the channel
	outcomeNone     commandOutcome = "no answer"
)

// outcomesOf returns the outcome of each command, from the event logs of their hubs, and the value
// that the device reported instead if the outcome is outcomeNotDone, outcomeOther or outcomeJammed.
// It searches until ctx ends.
func (p *Portal) outcomesOf(
	ctx context.Context, commands []domain.CommandRecord,
) (outcomes []commandOutcome, reported []json.RawMessage) {
	outcomes = make([]commandOutcome, len(commands))
	reported = make([]json.RawMessage, len(commands))
	found := make([]*commandSearch, len(commands))
	open := map[domain.HubID][]*commandSearch{}
	for i, command := range commands {
		if command.Outcome != "accepted" {
			continue
		}
		if found[i] = p.outcomes.search(command); !found[i].over {
			open[command.HubID] = append(open[command.HubID], found[i])
		}
	}
	var hubs errgroup.Group
	hubs.SetLimit(concurrentOutcomes)
	for hub, searches := range open {
		hubs.Go(func() error {
			p.searchLog(ctx, hub, searches)
			return nil
		})
	}
	_ = hubs.Wait() // without its events the outcome of a command stays unknown
	var judges errgroup.Group
	judges.SetLimit(concurrentOutcomes)
	for i, search := range found {
		if search == nil || !search.read {
			continue
		}
		judges.Go(func() error {
			reported[i] = search.reported
			outcomes[i] = p.judge(ctx, commands[i], search.result(p.Now()), search.reported)
			return nil
		})
	}
	_ = judges.Wait() // they return no error
	return outcomes, reported
}

// judge returns the outcome of a command after which another number was reported: it is done if the
// number is the nearest that the device can take. The resolution of the channel tells it, or the
// hub's own status while both are the last.
func (p *Portal) judge(
	ctx context.Context, command domain.CommandRecord, outcome commandOutcome, reported json.RawMessage,
) commandOutcome {
	asked, isNumber := domain.JSONNumber(command.Value)
	got, isOther := domain.JSONNumber(reported)
	if outcome != outcomeNotDone || !isNumber || !isOther {
		return outcome
	}
	state := p.lastState(ctx, command)
	step := domain.Resolution(command.Key, state.Channel.Capabilities)
	isLast := state.Certain && domain.SameValue(state.Channel.Desired, command.Value) &&
		domain.SameValue(state.Channel.Value, reported)
	switch {
	case step > 0 && domain.IsNearest(asked, got, step),
		isLast && state.Channel.Status == domain.ChannelSynchronized:
		return outcomeDone
	case step > 0, isLast:
		return outcomeNotDone
	}
	return outcomeOther
}

// lastState returns the last reported state of a command's channel, the zero state if none is
// known.
func (p *Portal) lastState(
	ctx context.Context, command domain.CommandRecord,
) (state domain.ReportedState) {
	page, err := p.Reported.States(
		ctx, domain.Reach{OrgID: command.OrgID},
		domain.StateFilter{HubID: &command.HubID, Key: &command.Key}, 1,
		domain.StatePosition{
			HubID: command.HubID, DeviceID: command.DeviceID, Key: command.Key,
			Endpoint: command.Endpoint - 1, // the channel is the first one after it
		},
	)
	if err != nil || len(page.Data) == 0 {
		return state // the outcome is shown without it
	}
	if s := page.Data[0]; s.DeviceID == command.DeviceID && s.Channel.Endpoint == command.Endpoint {
		return s
	}
	return state
}
