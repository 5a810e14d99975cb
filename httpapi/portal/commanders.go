package portal

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"hubcloud/domain"
)

// commandDelay is at most how long after its command a hub reports the command.
const commandDelay = 15 * time.Second

// reportDelay is at most how long after a command its lock or barrier reports the new state.
const reportDelay = 30 * time.Second

// commanders knows who caused events: the senders of the newest commands of hubs, of each hub at
// most limit. It reads the commands of a hub when it is asked about the hub's first event.
type commanders struct {
	req    *request
	limit  int
	sent   map[domain.HubID][]domain.CommandRecord
	actors map[domain.Actor]string
	codes  map[domain.HubID][]domain.Credential
}

func (req *request) commanders(limit int) *commanders {
	return &commanders{
		req: req, limit: limit,
		sent: map[domain.HubID][]domain.CommandRecord{}, actors: map[domain.Actor]string{},
		codes: map[domain.HubID][]domain.Credential{},
	}
}

// name sets the By of an entry: who sent a command, who locked or opened something, and with which
// code; "" if nobody did, or it is not known.
func (c *commanders) name(entry *logEntry) error {
	var channel channelEvent
	if entry.DeviceID == nil || !strings.HasPrefix(entry.Type, "channel.") ||
		json.Unmarshal(entry.Data, &channel) != nil {
		return nil
	}
	delay, otherwise := commandDelay, byBuilding
	switch {
	case channel.Key == "alarm" && entry.Type == "channel.observed":
		entry.By = c.alarmBy(*entry, channel.Value)
		return nil
	case entry.Type == "channel.observed" && (channel.Key == "lock" || channel.Key == "barrier"):
		delay, otherwise = reportDelay, byDevice
	case entry.Type != "channel.desired":
		return nil
	}
	sent, read := c.sent[entry.HubID]
	if !read {
		var err error
		hub := []domain.Hub{{ID: entry.HubID}}
		if sent, err = c.req.readCommands(c.req.ctx, hub, c.limit); err != nil {
			return err
		}
		if err = c.req.actorNames(c.req.ctx, sent, c.actors); err != nil {
			return err
		}
		c.sent[entry.HubID] = sent
	}
	entry.By = otherwise
	if command, ok := commandOf(*entry, channel, sent, delay); ok {
		entry.By = actorText(command.Actor, c.actors[command.Actor])
	}
	return nil
}

// Who caused an event that no command of a person or a key caused.
const (
	byDevice   = "at the device"
	byBuilding = "in the building" // a rule of the hub, or a program in its network
)

// alarmBy returns who caused what an alarm channel reports: a code, or somebody at the device.
func (c *commanders) alarmBy(entry logEntry, value json.RawMessage) string {
	var alarm struct {
		Event string
		User  *float64
	}
	switch err := json.Unmarshal(value, &alarm); {
	case err != nil:
		return ""
	case alarm.User != nil:
		return c.codeName(entry.HubID, *entry.DeviceID, *alarm.User, entry.Time)
	case strings.HasPrefix(alarm.Event, "manual_"), strings.HasPrefix(alarm.Event, "keypad_"):
		return byDevice
	}
	return ""
}

// textBesideBy returns the text of an entry for a table that has the column By: without the code that
// By names.
func (e *logEntry) textBesideBy() string {
	i := strings.LastIndex(e.By, "code ")
	if i < 0 {
		return e.Text
	}
	number := strings.TrimSuffix(e.By[i+len("code "):], ")")
	return strings.Replace(
		e.Text, fill(scriptTexts["alarm user"], "alarm", "", "user", number), "", 1,
	)
}

// commandOf returns the command that an event reports, or reports the outcome of: the newest of its
// channel and value that was sent at most delay before.
func commandOf(
	entry logEntry, channel channelEvent, sent []domain.CommandRecord, delay time.Duration,
) (domain.CommandRecord, bool) {
	i := slices.IndexFunc(sent, func(c domain.CommandRecord) bool {
		after := entry.Time.Sub(c.At) // the hub's clock may be some seconds behind the cloud's
		return c.DeviceID == *entry.DeviceID && c.Key == channel.Key &&
			c.Endpoint == channel.Endpoint && string(c.Value) == string(channel.Value) &&
			after >= -commandDelay && after <= delay
	})
	if i < 0 {
		return domain.CommandRecord{}, false
	}
	return sent[i], true
}
