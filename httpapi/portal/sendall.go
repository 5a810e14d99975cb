package portal

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"hubcloud/domain"
)

const (
	// settleTime is how long sendAll waits for devices after their hubs accepted the commands.
	settleTime = 4 * time.Second
	// settlePause is how long sendAll waits between two questions to a hub about its devices.
	settlePause = 400 * time.Millisecond
)

// groupSend is a command of several that are sent together.
type groupSend struct {
	Target  target
	Command domain.Command
}

// sendResult is the result of a command.
type sendResult struct {
	// Err is the rejection of the command; nil if the hub accepted it.
	Err error
	// Outcome is what the device did; outcomePending if it has reported nothing since the command.
	// Value is the displayed value that the device reported last.
	Outcome commandOutcome
	Value   string
}

// sendAll sends commands and returns their results in the same order. It then waits some seconds for
// what the devices report. What they had reported before counts for nothing: a door that was locked
// before the command may be open after it.
func (p *Portal) sendAll(
	ctx context.Context, sender Commands, o domain.Origin, sends []groupSend,
) []sendResult {
	commands := make([]domain.Command, len(sends))
	hubs := map[domain.HubID]*settling{}
	for i, send := range sends {
		commands[i] = send.Command
		hubs[send.Target.Hub] = &settling{portal: p, hub: send.Target.Hub}
	}
	eachHub(hubs, func(s *settling) {
		// Without the log's end the devices' states decide alone.
		end, err := p.Events.EndCursor(ctx, s.hub)
		s.after, s.readable = end, err == nil
	})
	results := make([]sendResult, len(sends))
	for i, sent := range sender.SendAll(ctx, o, commands) {
		if results[i].Err = sent.Err; sent.Err == nil {
			hubs[sends[i].Target.Hub].accept(commands[i], sent.Channel, &results[i])
		}
	}
	eachHub(hubs, func(s *settling) { s.settle(ctx) })
	return results
}

// eachHub calls do for hubs, several at once.
func eachHub(hubs map[domain.HubID]*settling, do func(*settling)) {
	var group errgroup.Group
	group.SetLimit(concurrentHubs)
	for _, hub := range hubs {
		group.Go(func() error {
			do(hub)
			return nil
		})
	}
	_ = group.Wait() // do returns no error
}

// settling waits for the outcomes of the commands of one hub.
type settling struct {
	portal *Portal
	hub    domain.HubID
	// after is the cursor of the last event that was read, if the log is readable.
	after    string
	readable bool
	accepted []*accepted
}

// accepted is a command that the hub has accepted.
type accepted struct {
	outcomeSearch
	// answer is the channel from the hub's answer.
	answer domain.Channel
	result *sendResult
}

// accept notes a command that the hub has accepted.
func (s *settling) accept(command domain.Command, answer domain.Channel, result *sendResult) {
	result.Outcome, result.Value = outcomePending, formatReported(answer)
	s.accepted = append(s.accepted, &accepted{
		outcomeSearch: newOutcomeSearch(
			command.DeviceID, command.Key, command.Endpoint, command.Value,
		),
		answer: answer, result: result,
	})
}

// settle waits until all outcomes are known, at most for settleTime.
func (s *settling) settle(ctx context.Context) {
	s.await(ctx)
	s.readEvents(ctx) // an alarm follows the report of a jammed lock
	for _, a := range s.accepted {
		switch {
		case a.result.Outcome == outcomeNotDone && a.outcome == outcomeJammed:
			a.result.Outcome = outcomeJammed
		case a.result.Outcome == outcomePending && a.outcome != outcomeDone:
			a.decide(nil) // another value, though the hub still waits
		}
	}
}

// await is settle without the last look at the events.
func (s *settling) await(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	for {
		// First the events: a state that is read after a report is not from before it.
		s.readEvents(ctx)
		waiting := false
		devices := map[int64]*domain.Device{} // as the hub answered; nil without an answer
		for _, a := range s.accepted {
			if a.result.Outcome != outcomePending {
				continue
			}
			device, asked := devices[a.deviceID]
			if !asked {
				if d, err := s.portal.Devices.Get(ctx, s.hub, a.deviceID); err == nil {
					device = &d
				}
				devices[a.deviceID] = device
			}
			a.decide(device)
			waiting = waiting || a.result.Outcome == outcomePending
		}
		if !waiting {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(settlePause):
		}
	}
}

// readEvents reads the new events of the hub's log.
func (s *settling) readEvents(ctx context.Context) {
	for s.readable {
		page, err := s.portal.Events.Page(ctx, s.hub, s.after, outcomePage)
		if err != nil {
			return
		}
		for _, event := range page.Events {
			for _, a := range s.accepted {
				a.take(event)
			}
		}
		if s.after = page.Next; !page.HasMore {
			return
		}
	}
}

// decide sets the result once the outcome is known: from the device, which its hub was asked for
// after the command, or nil if there was no answer; and from the reports that followed the command.
// The hub's own comparison of what it reports with the command, its status, has precedence: only
// the hub knows the resolution of a value.
func (a *accepted) decide(device *domain.Device) {
	last := a.answer
	last.Value = a.reported
	outcome, value := a.outcome, formatReported(last)
	if device != nil {
		c, ok := findChannel(*device, a.key, a.endpoint)
		if ok && timeOf(c.DesiredAt).Equal(timeOf(a.answer.DesiredAt)) {
			outcome, value = a.outcomeOf(c), formatReported(c)
		}
	}
	if outcome != outcomePending {
		a.result.Outcome, a.result.Value = outcome, value
	}
}

// outcomeOf returns the outcome from the state of the channel. The state counts only if the device
// has reported since the command: by an event, or with another time of its last report than in the
// hub's answer to the command. A hub need not send an event for a value that has not changed.
func (a *accepted) outcomeOf(c domain.Channel) commandOutcome {
	reported := a.outcome != outcomePending ||
		!timeOf(c.ObservedAt).Equal(timeOf(a.answer.ObservedAt))
	switch {
	case c.Status == domain.ChannelFailed:
		return outcomeFailed
	case c.Status == domain.ChannelPending || !reported:
		return outcomePending
	case c.Status == domain.ChannelSynchronized:
		return outcomeDone
	case c.Status == domain.ChannelDiverged && a.outcome == outcomeJammed:
		return outcomeJammed
	case c.Status == domain.ChannelDiverged:
		return outcomeNotDone
	}
	return a.outcome
}
