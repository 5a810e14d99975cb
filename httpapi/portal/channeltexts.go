package portal

// pendingTexts are the texts of commands that a device has not carried out yet, by channel key and
// the JSON of the wanted value.
var pendingTexts = map[string]map[string]string{
	"lock":             {"true": "Locking…", "false": "Unlocking…"},
	"barrier":          {"true": "Opening…", "false": "Closing…"},
	"switch":           {"true": "Turning on…", "false": "Turning off…"},
	"local_protection": {"true": "Disabling…", "false": "Enabling…"},
}

// notDoneTexts are the explanations of commands that a device did not carry out, by channel key.
var notDoneTexts = map[string]string{
	"lock":    "the lock reports {value}. It may be jammed.",
	"barrier": "the barrier reports {value}. It may be blocked.",
}

// outcomeTexts are the outcomes of commands, by the value of commandOutcome, and their styles.
var outcomeTexts = map[string]struct{ Text, Mark string }{
	"":          {"Accepted, what followed is not known", "wait"},
	"done":      {"Done", "good"},
	"pending":   {"Waiting for the device", "wait"},
	"not done":  {"Not done: the device reports {value}", "bad"},
	"other":     {"The device reports {value}", "wait"},
	"failed":    {"The hub gave up. The device may be out of reach.", "bad"},
	"jammed":    {"Jammed: the device reports {value}", "bad"},
	"replaced":  {"Replaced by the next command", "wait"},
	"no answer": {"Not confirmed: no report from the device", "bad"},
}

// controlTexts are the labels of the buttons of channels that are on or off, by channel key.
var controlTexts = map[string]struct{ On, Off string }{
	"switch":           {"Turn on", "Turn off"},
	"local_protection": {"Disable", "Enable"},
	"lock":             {"Lock", "Unlock"},
	"barrier":          {"Open", "Close"},
}
