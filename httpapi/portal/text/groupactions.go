package text

// GroupActions are the texts of actions on many devices at once, by name: the link to the page of
// the action, the page's heading, and its button.
var GroupActions = map[string]struct{ Label, Title, Button string }{
	"lock":  {"Lock all…", "Lock all doors", "Lock"},
	"close": {"Close all barriers…", "Close all barriers", "Close"},
	"off":   {"Turn off all switches…", "Turn off all switches", "Turn off"},
	"on":    {"Turn on all switches…", "Turn on all switches", "Turn on"},
	"heat":  {"Set heating…", "Set one temperature to heat to", "Set"},
	"cool":  {"Set cooling…", "Set one temperature to cool to", "Set"},
}

// GroupResults are the results of one command of an action on many devices, and their styles.
var GroupResults = map[string]struct{ Text, Mark string }{
	"done":        {"Done", "good"},
	"pending":     {"Not confirmed: no report yet; before the command: {value}", "wait"},
	"not done":    {"Not done: the device reports {value}", "bad"},
	"jammed":      {"Jammed: the device reports {value}", "bad"},
	"failed":      {"The hub gave up. The device may be out of reach.", "bad"},
	"rejected":    {"Rejected: {reason}", "bad"},
	"offline":     {"Not sent: the hub is offline", "bad"},
	"unavailable": {"Not sent: the hub is not ready", "bad"},
	"no answer":   {"No answer from the hub. It may still have acted.", "bad"},
	"skipped":     {"Not sent: the hub does not answer", "bad"},
	"gone":        {"Not sent: there is no such device any more", "bad"},
}
