package portal

// logPageEvents is how many events a page of a log shows.
const logPageEvents = 100

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

func entryOf(event logEvent, devices map[int64]deviceInfo) logEntry {
	return logEntry{
		logEvent:  event,
		Text:      describeEvent(event, unitOf(event, devices)),
		Severity:  severityOf(event),
		Untrusted: event.ClockTrusted != nil && !*event.ClockTrusted,
	}
}
