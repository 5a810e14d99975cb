package live

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"time"

	"hubcloud/domain"
	"hubcloud/httpapi/portal/text"
)

const (
	// logPage is how many events a page of a log shows.
	logPage = 100
	// logScan is about how many events ReadLog reads in search of those of one device.
	logScan = 5000
)

// LogEntry is an event for display.
type LogEntry struct {
	Event
	// Text describes the event.
	Text string
	// Untrusted reports that the hub's clock was not set at the time of the event.
	Untrusted bool
}

// LogPage is a part of a hub's log.
type LogPage struct {
	Entries []LogEntry
	// Next is the cursor to continue from, empty if no events follow yet.
	Next string
	// Expired reports that requested events have expired. Entries then begins with the oldest event
	// of the log.
	Expired bool
}

// LogRequest selects a part of a hub's log.
type LogRequest struct {
	// After is the cursor to continue from.
	After string
	// At is the time to begin at if After is empty. Without both, the part begins with the oldest
	// event.
	At time.Time
	// Device selects the events of one device; nil selects all events.
	Device *int64
}

// ReadLog reads a part of a hub's log, oldest event first. An invalid cursor is an invalid_request
// error; an expired cursor is not an error.
func (l *Live) ReadLog(ctx context.Context, hub domain.HubID, request LogRequest) (LogPage, error) {
	var page LogPage
	after := request.After
	if after == "" && !request.At.IsZero() {
		var err error
		if after, err = l.cfg.Events.At(ctx, hub, request.At); err != nil {
			return LogPage{}, err
		}
		page.Expired = request.At.Before(l.cfg.Now().Add(-l.cfg.Retention))
	}
	for scanned := 0; len(page.Entries) < logPage && scanned < logScan; {
		part, err := l.cfg.Events.Page(ctx, hub, after, logPage)
		if codeOf(err) == domain.CodeCursorExpired && after != "" && scanned == 0 {
			after, page.Expired = "", true
			continue
		}
		if err != nil {
			return LogPage{}, err
		}
		for i, encoded := range part.Events {
			after = encoded.Cursor
			if event, ok := decode(encoded); ok &&
				(request.Device == nil || event.isOf(*request.Device)) {
				page.Entries = append(page.Entries, entryOf(event))
			}
			if len(page.Entries) == logPage && (i < len(part.Events)-1 || part.HasMore) {
				page.Next = after
				return page, nil
			}
		}
		if scanned += len(part.Events); !part.HasMore {
			return page, nil
		}
	}
	page.Next = after
	return page, nil
}

func entryOf(event Event) LogEntry {
	return LogEntry{
		Event:     event,
		Text:      describe(event),
		Untrusted: event.ClockTrusted != nil && !*event.ClockTrusted,
	}
}

// describe returns a description of an event. For an event of an unknown type it returns the data.
func describe(event Event) string {
	var data struct {
		Name   string
		Reason *string
		From   json.Number
		To     json.Number
	}
	_ = json.Unmarshal(event.Data, &data) // fields of the wrong type are not shown
	switch event.Type {
	case "channel.observed", "channel.desired":
		var c channelEvent
		if json.Unmarshal(event.Data, &c) != nil {
			break
		}
		name := keyName(c.Key)
		if c.Endpoint > 0 {
			name += " " + formatInt(c.Endpoint)
		}
		if c.Key == "alarm" && event.Type == "channel.observed" {
			return formatValue(c.Key, "", c.Value)
		}
		if event.Type == "channel.desired" {
			return name + " set to " + formatValue(c.Key, "", c.Value)
		}
		return name + " is " + formatValue(c.Key, "", c.Value)
	case "hub.connected":
		return "Hub connected"
	case "hub.disconnected":
		return "Hub disconnected: " + disconnectText(data.Reason)
	case "hub.events_skipped":
		if data.Reason != nil {
			return "Event " + data.From.String() + " of the hub could not be read: " + *data.Reason
		}
		return "The hub lost events " + data.From.String() + " to " + data.To.String()
	case "device.added":
		return "Device joined: " + nameOr(data.Name, "unnamed device")
	case "device.updated":
		return "Device updated: " + nameOr(data.Name, "unnamed device")
	case "device.available":
		return "Device available again"
	case "device.unavailable":
		return "Device out of reach"
	case "device.forgotten":
		return strings.TrimSpace("Device removed " + parenthesized(data.Name))
	}
	if pattern, ok := text.Scripts["event "+event.Type]; ok {
		return describeAccess(pattern, event.Data)
	}
	var compact bytes.Buffer
	if json.Compact(&compact, event.Data) != nil || compact.String() == "{}" {
		return ""
	}
	return truncate(compact.String(), 10*longestValue)
}

// describeAccess returns the text of an event about credentials or rules.
func describeAccess(pattern string, data json.RawMessage) string {
	var of struct {
		Name, Label, State string
		Slot               json.Number
	}
	_ = json.Unmarshal(data, &of) // fields of the wrong type are not shown
	return truncate(text.Fill(
		pattern, "name", nameOr(of.Name, "–"), "label", nameOr(of.Label, "–"),
		"state", nameOr(of.State, "–"), "slot", nameOr(of.Slot.String(), "–"),
	), 10*longestValue)
}

// nameOr returns a name for display, or none if the name is blank.
func nameOr(name, none string) string {
	if strings.TrimSpace(name) == "" {
		return none
	}
	return truncate(name, longestValue)
}

func parenthesized(name string) string {
	if name == "" {
		return ""
	}
	return "(" + name + ")"
}
