package portal

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"hubcloud/domain"
)

const (
	// outcomeTime is how long a command without a report counts as under way.
	outcomeTime = time.Minute
	// explainTimeout bounds the search for the outcomes of the commands of a page's channels.
	explainTimeout = time.Second
)

// statusTexts returns the short text and the explanation of a channel's status. Both are empty for
// a channel without a command under way, failed or undone. Of a channel that has diverged, outcome
// is the outcome of its last command.
func statusTexts(c deviceChannel, outcome commandOutcome) (tag, explanation string) {
	pairs := []string{"value", c.Text, "wanted", c.DesiredText}
	switch c.Status {
	case domain.ChannelPending:
		if texts, ok := pendingTexts[c.Key]; ok && isBool([]byte(c.Desired)) {
			return texts[c.Desired], ""
		}
		return "Setting to " + c.DesiredText + "…", ""
	case domain.ChannelFailed:
		return "Failed:", fill(
			"not set to {wanted}. The hub gave up. The device may be out of reach.", pairs...,
		)
	case domain.ChannelDiverged:
		switch outcome {
		case outcomeDone:
			return changedTag, fill(
				"now {value}. The last command was {wanted}. Someone may have operated it by hand.",
				pairs...,
			)
		case outcomeUnknown, outcomeReplaced:
			return differentTag, fill("{value}. The last command was {wanted}.", pairs...)
		}
		pattern, ok := notDoneTexts[c.Key]
		if !ok {
			pattern = "the device reports {value}, not {wanted}."
		}
		return "Not done:", fill(pattern, pairs...)
	}
	return "", ""
}

// The tags of channels that differ from their commands and are no failures.
const (
	changedTag   = "Changed:"
	differentTag = "Different:"
)

// explainDiverged sets the texts of the channels of a hub's devices that differ from their last
// command: the device did not do it, or was operated later. As for all outcomes, the order of the
// hub's log decides and no time: hubs' clocks may be wrong. A channel of whose command nothing is
// found in time only differs.
func (p *Portal) explainDiverged(
	ctx context.Context, org string, hub domain.HubID, devices []hubDevice,
) {
	var diverged []*deviceChannel
	for _, device := range devices {
		for i := range device.Channels {
			if c := &device.Channels[i]; c.Status == domain.ChannelDiverged {
				diverged = append(diverged, c)
			}
		}
	}
	if len(diverged) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, explainTimeout)
	defer cancel()
	sent, err := p.History.History(ctx, hub, p.Now().Add(-p.Retention), maxCommands)
	if err != nil {
		p.Logger.DebugContext(ctx, "commands of hub unknown", "hub_id", hub, "error", err)
		return
	}
	slices.Reverse(sent) // the newest first
	var channels []*deviceChannel
	var commands []domain.CommandRecord
	for _, c := range diverged {
		i := slices.IndexFunc(sent, func(command domain.CommandRecord) bool {
			return command.OrgID == org && command.DeviceID == c.DeviceID && command.Key == c.Key &&
				command.Endpoint == c.Endpoint
		})
		if i >= 0 && domain.SameValue(json.RawMessage(c.Desired), sent[i].Value) {
			command := sent[i]
			command.Outcome = "accepted" // the hub has it, though the record may not say so yet
			channels, commands = append(channels, c), append(commands, command)
		}
	}
	outcomes, _ := p.outcomesOf(ctx, commands)
	for i, c := range channels {
		c.StatusTag, c.StatusText = statusTexts(*c, outcomes[i])
	}
}

func isBool(value []byte) bool { return string(value) == "true" || string(value) == "false" }

// timeOf returns a time of a hub's answer, zero for none or an invalid one.
func timeOf(at *string) time.Time {
	if at == nil {
		return time.Time{}
	}
	t, _ := time.Parse(domain.TimeLayout, *at) // zero if it is invalid
	return t
}
