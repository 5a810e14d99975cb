package live

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"time"

	"hubcloud/domain"
)

// logPage is how many events a page of a log shows; logScan how many are looked through for those
// of one device.
const (
	logPage = 100
	logScan = 5000
)

// LogEntry is an event as a log's page shows it.
type LogEntry struct {
	Event
	// Text says in words what happened.
	Text string
	// Untrusted says that the hub stamped it before it knew the time.
	Untrusted bool
}

// LogPage is a part of a hub's log.
type LogPage struct {
	Entries []LogEntry
	// Next is where the following part begins; empty when there is none yet.
	Next string
	// Expired says that what was asked for is gone, and the part begins with the oldest event that
	// is kept.
	Expired bool
}

// LogRequest says which part.
type LogRequest struct {
	// At is the time to begin at, After the cursor to go on from, which wins; without both the log
	// begins with the oldest event.
	At    time.Time
	After string
	// Device leaves only its events; nil leaves all.
	Device *int64
}

// ReadLog reads a part of a hub's log, oldest first. What is asked for that has expired begins with
// the oldest event.
func (l *Live) ReadLog(ctx context.Context, hub domain.HubID, want LogRequest) (LogPage, error) {
	after, err := want.After, error(nil)
	if after == "" && !want.At.IsZero() {
		if after, err = l.Events.At(ctx, hub, want.At); err != nil {
			return LogPage{}, err
		}
	}
	page := LogPage{
		Expired: want.After == "" && !want.At.IsZero() && want.At.Before(l.Now().Add(-l.Retention)),
	}
	for scanned := 0; len(page.Entries) < logPage && scanned < logScan; {
		part, err := l.Events.Page(ctx, hub, after, logPage)
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
				(want.Device == nil || event.DeviceID != nil && *event.DeviceID == *want.Device) {
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

// describe says what an event tells. Data of types that nobody knows yet is shown as it is.
func describe(event Event) string {
	var named struct {
		Name   string
		Reason *string
		From   json.Number
		To     json.Number
	}
	_ = json.Unmarshal(event.Data, &named) // what does not fit is not said
	switch event.Type {
	case "channel.observed", "channel.desired":
		var c channelEvent
		if json.Unmarshal(event.Data, &c) != nil {
			break
		}
		said := nameOfKey(c.Key)
		if c.Endpoint > 0 {
			said += " " + formatInt(c.Endpoint)
		}
		if event.Type == "channel.desired" {
			return said + " was asked to be " + text(c.Key, "", c.Value)
		}
		return said + " is " + text(c.Key, "", c.Value)
	case "hub.connected":
		return "The hub connected"
	case "hub.disconnected":
		return "The hub disconnected: " + explainDisconnect(named.Reason)
	case "hub.events_skipped":
		return "Events " + named.From.String() + " to " + named.To.String() + " of the hub were lost"
	case "device.added":
		return "Joined as " + calledOr(named.Name, "a device without a name")
	case "device.updated":
		return "Changed: it is " + calledOr(named.Name, "a device without a name") + " now"
	case "device.available":
		return "Can be reached again"
	case "device.unavailable":
		return "Cannot be reached"
	case "device.forgotten":
		return strings.TrimSpace("Removed from the hub " + parenthesized(named.Name))
	}
	var compact bytes.Buffer
	if json.Compact(&compact, event.Data) != nil || compact.String() == "{}" {
		return ""
	}
	return clip(compact.String(), 10*longestValue)
}

// calledOr gives a name as far as it is shown, or other words where a hub gave none.
func calledOr(name, none string) string {
	if strings.TrimSpace(name) == "" {
		return none
	}
	return clip(name, longestValue)
}

func parenthesized(name string) string {
	if name == "" {
		return ""
	}
	return "(" + name + ")"
}
