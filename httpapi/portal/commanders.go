package portal

import (
	"encoding/json"
	"slices"
	"time"

	"hubcloud/domain"
	"hubcloud/httpapi/portal/live"
	"hubcloud/httpapi/portal/text"
)

// commandDelay is at most how long after its command a hub reports the command.
const commandDelay = 15 * time.Second

// nameCommanders adds to the entries of commands who sent them, as far as it is known: commands from
// within the building are not.
func (req *request) nameCommanders(hub domain.HubID, entries []live.LogEntry) error {
	isCommand := func(entry live.LogEntry) bool { return entry.Type == "channel.desired" }
	if !slices.ContainsFunc(entries, isCommand) {
		return nil
	}
	ctx := req.http.Context()
	sent, err := req.readCommands(ctx, []domain.Hub{{ID: hub}})
	if err != nil {
		return err
	}
	actors, err := req.actorNames(ctx, sent)
	if err != nil {
		return err
	}
	for i := range entries {
		if !isCommand(entries[i]) {
			continue
		}
		if command, ok := commandOf(entries[i], sent); ok {
			entries[i].Text = text.Fill(
				text.Pages["log-by"], "event", entries[i].Text,
				"who", actorText(command.Actor, actors[command.Actor]),
			)
		}
	}
	return nil
}

// commandOf returns the command that an event reports: the newest of its channel and value that was
// sent shortly before.
func commandOf(entry live.LogEntry, sent []domain.CommandRecord) (domain.CommandRecord, bool) {
	var channel struct {
		Key      string
		Endpoint int64
		Value    json.RawMessage
	}
	if entry.DeviceID == nil || json.Unmarshal(entry.Data, &channel) != nil {
		return domain.CommandRecord{}, false
	}
	i := slices.IndexFunc(sent, func(c domain.CommandRecord) bool {
		// The hub's clock may be some seconds behind the cloud's.
		return c.DeviceID == *entry.DeviceID && c.Key == channel.Key &&
			c.Endpoint == channel.Endpoint && string(c.Value) == string(channel.Value) &&
			entry.Time.Sub(c.At).Abs() <= commandDelay
	})
	if i < 0 {
		return domain.CommandRecord{}, false
	}
	return sent[i], true
}
