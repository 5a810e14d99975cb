package text

// Pending are the texts of commands that a device has not carried out yet, by channel key and the
// JSON of the wanted value.
var Pending = map[string]map[string]string{
	"lock":             {"true": "Locking…", "false": "Unlocking…"},
	"barrier":          {"true": "Opening…", "false": "Closing…"},
	"switch":           {"true": "Turning on…", "false": "Turning off…"},
	"local_protection": {"true": "Disabling…", "false": "Enabling…"},
}

// NotDone are the explanations of commands that a device did not carry out, by channel key.
var NotDone = map[string]string{
	"lock":    "The lock still reports {value}. It may be jammed.",
	"barrier": "The barrier still reports {value}. It may be blocked.",
}

// Outcomes are the outcomes of commands, by the value of live.Outcome, and their styles.
var Outcomes = map[string]struct{ Text, Mark string }{
	"":          {"Accepted", "good"},
	"done":      {"Done", "good"},
	"pending":   {"Waiting for the device", "wait"},
	"not done":  {"Not done: still {value}", "bad"},
	"jammed":    {"Jammed: still {value}", "bad"},
	"replaced":  {"Replaced by the next command", "wait"},
	"no answer": {"No answer from the device", "bad"},
}

// Texts of a channel's status. {value} is the reported value, {wanted} that of the last command.
const (
	SettingTo    = "Setting to {value}…"
	NotDoneTag   = "Not done"
	NotDoneOther = "The device reports {value}, not {wanted}."
	ChangedTag   = "Changed"
	Changed      = "Now {value}. The last command was {wanted}. Someone may have operated it by hand."
	FailedTag    = "Failed"
	Failed       = "Not set to {wanted}: the hub gave up. The device may be out of reach."
)
