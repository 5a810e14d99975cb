package live

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"hubcloud/domain"
)

const (
	// logPage is how many events a page of a log shows.
	logPage = 100
	// logScan is about how many events ReadLog reads in search of those that a filter selects.
	logScan = 20_000
	// scanPage is how many events are read at once with a filter.
	scanPage = 500
)

// LogEntry is an event for display.
type LogEntry struct {
	Event
	// Text describes the event.
	Text     string
	Severity Severity
	// Untrusted reports that the hub's clock was not set at the time of the event.
	Untrusted bool
}

// LogPage is a part of a hub's log, newest event first.
type LogPage struct {
	Entries []LogEntry
	// Older is the cursor of the place before the entries, "" if the log has no older events.
	Older string
	// Expired reports that the events from before the wanted time have expired, or that the cursor
	// is from before a reset of the hub. After a reset Entries begins with the newest event.
	Expired bool
}

// LogFilter selects events.
type LogFilter struct {
	// Device selects the events of one device; nil selects all events.
	Device *int64
	// Type is what the types of events begin with, such as "device.".
	Type string
	// Severity is the least severity.
	Severity Severity
}

// selectsAll reports whether the filter selects every event.
func (f LogFilter) selectsAll() bool {
	return f.Device == nil && f.Type == "" && f.Severity == SeverityRoutine
}

// LogRequest selects a part of a hub's log.
type LogRequest struct {
	// Before is the cursor of the place that the part ends before.
	Before string
	// At is the time that the part ends before, if Before is empty. Without both, the part begins
	// with the newest event.
	At     time.Time
	Filter LogFilter
	// Devices are the hub's devices, for the units of their channels.
	Devices map[int64]DeviceInfo
}

// ReadLog reads a part of a hub's log. An invalid cursor is an invalid_request error; an expired
// cursor is not an error.
func (l *Live) ReadLog(ctx context.Context, hub domain.HubID, request LogRequest) (LogPage, error) {
	var page LogPage
	more, err := l.place(ctx, hub, &request, &page.Expired)
	if err != nil || !more {
		return page, err
	}
	scan := logScan
	if request.Filter.selectsAll() {
		scan = logPage
	}
	collect := func(entry LogEntry) bool {
		page.Entries = append(page.Entries, entry)
		return len(page.Entries) < logPage
	}
	page.Older, err = l.eachBefore(ctx, hub, request, scan, collect)
	if codeOf(err) == domain.CodeCursorExpired { // the hub was reset
		request.Before, page.Expired, page.Entries = "", true, nil
		page.Older, err = l.eachBefore(ctx, hub, request, scan, collect)
	}
	return page, err
}

// place sets the place that a request ends before. more is false if everything before it has
// expired.
func (l *Live) place(
	ctx context.Context, hub domain.HubID, request *LogRequest, expired *bool,
) (more bool, err error) {
	if request.Before != "" || request.At.IsZero() || !request.At.Before(l.cfg.Now()) {
		return true, nil
	}
	request.Before, err = l.cfg.Events.At(ctx, hub, request.At)
	*expired = err == nil && request.Before == ""
	return !*expired, err
}

// eachBefore calls use with the selected events before a place, newest first, until use returns
// false or about scan events have been read. It returns the cursor of the place before the last
// event that was read, and "" if the log has no older events.
func (l *Live) eachBefore(
	ctx context.Context, hub domain.HubID, request LogRequest, scan int, use func(LogEntry) bool,
) (older string, err error) {
	var deviceField []byte
	if request.Filter.Device != nil {
		deviceField = fmt.Appendf(nil, `"device_id":%d,`, *request.Filter.Device)
	}
	before := request.Before
	for read := 0; read < scan; {
		part, err := l.cfg.Events.Before(ctx, hub, before, min(scan, scanPage))
		if err != nil {
			return "", err
		}
		for i, encoded := range part.Events {
			if !bytes.Contains(encoded.Envelope, deviceField) {
				continue // decode only the events of the device
			}
			event, ok := decode(encoded)
			if !ok || !request.Filter.selects(event) || use(entryOf(event, request.Devices)) {
				continue
			}
			if i+1 < len(part.Events) {
				return part.Events[i+1].Cursor, nil
			}
			if part.HasMore {
				return part.Next, nil
			}
			return "", nil
		}
		if !part.HasMore {
			return "", nil
		}
		before = part.Next
		read += len(part.Events)
	}
	return before, nil
}

// selects reports whether the filter selects an event.
func (f LogFilter) selects(event Event) bool {
	return (f.Device == nil || event.isOf(*f.Device)) && strings.HasPrefix(event.Type, f.Type) &&
		(f.Severity == SeverityRoutine || severityOf(event) >= f.Severity)
}

func entryOf(event Event, devices map[int64]DeviceInfo) LogEntry {
	return LogEntry{
		Event:     event,
		Text:      describe(event, unitOf(event, devices)),
		Severity:  severityOf(event),
		Untrusted: event.ClockTrusted != nil && !*event.ClockTrusted,
	}
}
