package portal

import "strconv"

// counts are the texts of numbers of things, by unit: of one, and of any other number.
var counts = map[string]struct{ one, many string }{
	"alarm":        {"1 alarm", "{number} alarms"},
	"day":          {"1 day", "{number} days"},
	"device":       {"1 device", "{number} devices"},
	"entry":        {"1 entry", "{number} entries"},
	"event":        {"1 event", "{number} events"},
	"hour":         {"1 hour", "{number} hours"},
	"hub":          {"1 hub", "{number} hubs"},
	"lock":         {"1 lock", "{number} locks"},
	"mail":         {"1 mail", "{number} mails"},
	"minute":       {"1 minute", "{number} minutes"},
	"more":         {"1 more", "{number} more"},
	"more alarm":   {"1 more alarm", "{number} more alarms"},
	"more warning": {"1 more warning", "{number} more warnings"},
	"report":       {"1 report", "{number} reports"},
	"room":         {"1 room", "{number} rooms"},
	"second":       {"1 second", "{number} seconds"},
	"warning":      {"1 warning", "{number} warnings"},
}

// counted returns a number of things, such as "3 hubs". The unit must be one of counts.
func counted(n int, unit string) string {
	texts := counts[unit]
	if n == 1 {
		return texts.one
	}
	return fill(texts.many, "number", strconv.Itoa(n))
}
