package text

// Conditions are the texts of what needs attention, by kind: what is wrong, and what to do. {value}
// is the reported value, {wanted} that of the last command, {channel} the channel, and {event} what
// an alarm reports. Other is the event of an alarm without one, and Many the title of
// several of the kind, where it is not Title.
var Conditions = map[string]struct{ Title, Advice, Other, Many string }{
	"smoke": {
		Title:  "Smoke detected",
		Advice: "Get people out and call the fire brigade. Check the place before you reset the alarm.",
	},
	"co": {
		Title:  "Carbon monoxide",
		Advice: "Get people out and call the fire brigade. Let fresh air in from outside.",
	},
	"heat": {
		Title:  "Heat alarm",
		Advice: "Get people out and call the fire brigade. Check the place before you reset the alarm.",
	},
	"gas": {
		Many:   "Gas detected",
		Title:  "{event}",
		Advice: "Get people out and call for help. Let fresh air in, and use no switches or flames.",
	},
	"emergency": {
		Many:   "Emergency",
		Title:  "Emergency: {event}",
		Advice: "Someone may need help at once. Call or go there.",
	},
	"leak": {
		Title:  "Water leak",
		Advice: "Turn off the water, then find the leak.",
	},
	"tamper": {
		Title:  "Tampering",
		Advice: "Someone may have opened or moved the device. Go and check it.",
	},
	"alarm": {
		Many:  "Alarm",
		Title: "Alarm: {event}", Other: "the device reports an alarm",
		Advice: "Go and check the device and the place.",
	},
	"warning": {
		Many:   "Warning",
		Title:  "{event}",
		Advice: "Check the device and the place.",
	},
	"fault": {
		Many:   "Fault",
		Title:  "Fault: {event}",
		Advice: "The device may not do its job. Check it, and replace it if needed.",
	},
	"service": {
		Many:   "Service needed",
		Title:  "{event}",
		Advice: "Have the device serviced, so that it stays reliable.",
	},
	"not_locked": {
		Title:  "Not fully locked",
		Advice: "The door may be open. Check its bolt, then lock it again.",
	},
	"jammed": {
		Title:  "Jammed",
		Advice: "The door may be open. Free the lock by hand, then send the command again.",
	},
	"battery": {
		Many:  "Low battery",
		Title: "Low battery ({value})", Other: "the device reports it",
		Advice: "Change the battery this week.",
	},
	"not_done": {
		Many:   "Commands not carried out",
		Title:  "{channel}: still {value}, not {wanted}",
		Advice: "The device did not do what was asked. Check it, then send the command again.",
	},
	"by_hand": {
		Many:   "Operated by hand",
		Title:  "{channel}: {value}, not {wanted}",
		Advice: "Someone has operated it by hand. Send the command again if that was not meant.",
	},
	"failed": {
		Many:   "Commands failed",
		Title:  "{channel}: not set to {wanted}",
		Advice: "The hub gave up. The device may be out of reach. Send the command again.",
	},
	"unreachable": {
		Title:  "Out of reach",
		Advice: "Check the device's power or battery, and that nothing blocks the radio.",
	},
	"hub_offline": {
		Title:  "Hub offline",
		Advice: "Nothing is seen or controlled there. Check the hub's power and network.",
	},
	"hub_silent": {
		Title:  "Hub does not report",
		Advice: "It is connected, but new events do not arrive. Restart the hub.",
	},
}
