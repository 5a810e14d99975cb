package portal

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"hubcloud/domain"
)

const (
	// logPageEvents is how many events a page of a log shows.
	logPageEvents = 100
	// logScan is about how many events readLog reads in search of those that a filter selects.
	logScan = 20_000
	// scanPage is how many events are read at once with a filter.
	scanPage = 500
)

// logEntry is an event for display.
type logEntry struct {
	logEvent
	// Text describes the event.
	Text     string
	Severity eventSeverity
	// By is who caused the event; "" if nobody did, or it is not known (see commanders).
	By string
	// Untrusted reports that the hub's clock was not set at the time of the event.
	Untrusted bool
}

// logPart is a part of a hub's log, newest event first.
type logPart struct {
	Entries []logEntry
	// Older is the cursor of the place before the entries, "" if the log has no older events.
	Older string
	// Expired reports that the events from before the wanted time have expired, or that the cursor
	// is from before a reset of the hub. After a reset Entries begins with the newest event.
	Expired bool
}

// logFilter selects events.
type logFilter struct {
	// Device selects the events of one device; nil selects all events.
	Device *int64
	// Type is what the types of events begin with, such as "device.".
	Type string
	// Severity is the least severity.
	Severity eventSeverity
}

// selectsAll reports whether the filter selects every event.
func (f logFilter) selectsAll() bool {
	return f.Device == nil && f.Type == "" && f.Severity == severityRoutine
}

// logRequest selects a part of a hub's log.
type logRequest struct {
	// Before is the cursor of the place that the part ends before.
	Before string
	// At is the time that the part ends before, if Before is empty. Without both, the part begins
	// with the newest event.
	At     time.Time
	Filter logFilter
	// Devices are the hub's devices, for the units of their channels.
	Devices map[int64]deviceInfo
}

// readLog reads a part of a hub's log. An invalid cursor is an invalid_request error; an expired
// cursor is not an error.
func (p *Portal) readLog(ctx context.Context, hub domain.HubID, request logRequest) (logPart, error) {
	var page logPart
	more, err := p.place(ctx, hub, &request, &page.Expired)
	if err != nil || !more {
		return page, err
	}
	scan := logScan
	if request.Filter.selectsAll() {
		scan = logPageEvents
	}
	collect := func(entry logEntry) bool {
		page.Entries = append(page.Entries, entry)
		return len(page.Entries) < logPageEvents
	}
	page.Older, err = p.eachBefore(ctx, hub, request, scan, collect)
	if codeOf(err) == domain.CodeCursorExpired { // the hub was reset
		request.Before, page.Expired, page.Entries = "", true, nil
		page.Older, err = p.eachBefore(ctx, hub, request, scan, collect)
	}
	return page, err
}

// place sets the place that a request ends before. more is false if everything before it has
// expired.
func (p *Portal) place(
	ctx context.Context, hub domain.HubID, request *logRequest, expired *bool,
) (more bool, err error) {
	if request.Before != "" || request.At.IsZero() || !request.At.Before(p.Now()) {
		return true, nil
	}
	request.Before, err = p.Events.At(ctx, hub, request.At)
	*expired = err == nil && request.Before == ""
	return !*expired, err
}

// eachBefore calls use with the selected events before a place, newest first, until use returns
// false or about scan events have been read. It returns the cursor of the place before the last
// event that was read, and "" if the log has no older events.
func (p *Portal) eachBefore(
	ctx context.Context, hub domain.HubID, request logRequest, scan int, use func(logEntry) bool,
) (older string, err error) {
	var deviceField []byte
	if request.Filter.Device != nil {
		deviceField = fmt.Appendf(nil, `"device_id":%d,`, *request.Filter.Device)
	}
	before := request.Before
	for read := 0; read < scan; {
		part, err := p.Events.Before(ctx, hub, before, min(scan, scanPage))
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
func (f logFilter) selects(event logEvent) bool {
	return (f.Device == nil || event.isOf(*f.Device)) && strings.HasPrefix(event.Type, f.Type) &&
		(f.Severity == severityRoutine || severityOf(event) >= f.Severity)
}

func entryOf(event logEvent, devices map[int64]deviceInfo) logEntry {
	return logEntry{
		logEvent:  event,
		Text:      describeEvent(event, unitOf(event, devices)),
		Severity:  severityOf(event),
		Untrusted: event.ClockTrusted != nil && !*event.ClockTrusted,
	}
}
