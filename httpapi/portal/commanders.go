package portal

import (
	"encoding/json"
	"slices"
	"time"

	"hubcloud/domain"
)

// commandDelay is at most how long after its command a hub reports the command.
const commandDelay = 15 * time.Second

// commanders are the senders of a hub's commands.
type commanders struct {
	sent   []domain.CommandRecord
	actors map[domain.Actor]string
}

// commanders returns the senders of the newest commands of a hub, of at most limit.
func (req *request) commanders(limit int) (c commanders, err error) {
	if c.sent, err = req.readCommands(req.ctx, []domain.Hub{{ID: req.hub}}, limit); err != nil {
		return c, err
	}
	c.actors, err = req.actorNames(req.ctx, c.sent)
	return c, err
}

// of returns who sent the command that an entry reports; "" for another entry, and if it is not
// known: a command from within the building has no sender.
func (c commanders) of(entry logEntry) string {
	if !isCommand(entry) {
		return ""
	}
	command, ok := commandOf(entry, c.sent)
	if !ok {
		return ""
	}
	return actorText(command.Actor, c.actors[command.Actor])
}

func isCommand(entry logEntry) bool { return entry.Type == "channel.desired" }

// nameCommanders adds to the entries of commands who sent them, as far as it is known.
func (req *request) nameCommanders(entries []logEntry) error {
	if !slices.ContainsFunc(entries, isCommand) {
		return nil
	}
	commanders, err := req.commanders(maxCommands)
	if err != nil {
		return err
	}
	for i, entry := range entries {
		if who := commanders.of(entry); who != "" {
			entries[i].Text = entry.Text + ", by " + who
		}
	}
	return nil
}

// commandOf returns the command that an event reports: the newest of its channel and value that was
// sent shortly before.
func commandOf(entry logEntry, sent []domain.CommandRecord) (domain.CommandRecord, bool) {
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
