package attention

// Text has the English for a kind of condition, with placeholders: {value} is the reported value,
// {wanted} what the last command asked for, {channel} the channel, and {event} what an alarm
// reports.
type Text struct {
	// Title is what is wrong, and Advice what to do.
	Title, Advice string
	// Other is the event of an alarm without one, or the value of a battery that reports none.
	Other string
	// Many is the title of several conditions of the kind, where it is not Title.
	Many string
}

// Texts are the texts of the kinds, for pages and mails. It must not be changed.
var Texts = map[Kind]Text{
	Smoke: {
		Title:  "Smoke detected",
		Advice: "Get people out and call the fire brigade. Check the place before you reset the alarm.",
	},
	CO: {
		Title:  "Carbon monoxide",
		Advice: "Get people out and call the fire brigade. Let fresh air in from outside.",
	},
	Heat: {
		Title:  "Heat alarm",
		Advice: "Get people out and call the fire brigade. Check the place before you reset the alarm.",
	},
	Gas: {
		Many:   "Gas detected",
		Title:  "{event}",
		Advice: "Get people out and call for help. Let fresh air in, and use no switches or flames.",
	},
	Emergency: {
		Many:   "Emergency",
		Title:  "Emergency: {event}",
		Advice: "Someone may need help at once. Call or go there.",
	},
	Leak: {
		Title:  "Water leak",
		Advice: "Turn off the water, then find the leak.",
	},
	Tamper: {
		Title:  "Tampering",
		Advice: "Someone may have opened or moved the device. Go and check it.",
	},
	Alarm: {
		Many:  "Alarm",
		Title: "Alarm: {event}", Other: "the device reports an alarm",
		Advice: "Go and check the device and the place.",
	},
	Warning: {
		Many:   "Warning",
		Title:  "{event}",
		Advice: "Check the device and the place.",
	},
	Fault: {
		Many:   "Fault",
		Title:  "Fault: {event}",
		Advice: "The device may not do its job. Check it, and replace it if needed.",
	},
	Service: {
		Many:   "Service needed",
		Title:  "{event}",
		Advice: "Have the device serviced, so that it stays reliable.",
	},
	NotLocked: {
		Title:  "Not fully locked",
		Advice: "The door may be open. Check its bolt, then lock it again.",
	},
	Jammed: {
		Title:  "Jammed",
		Advice: "The door may be open. Free the lock by hand, then send the command again.",
	},
	Battery: {
		Many:  "Low battery",
		Title: "Low battery ({value})", Other: "the device reports it",
		Advice: "Change the battery this week.",
	},
	NotDone: {
		Many:   "Commands not carried out",
		Title:  "{channel}: still {value}, not {wanted}",
		Advice: "The device did not do what was asked. Check it, then send the command again.",
	},
	ByHand: {
		Many:   "Operated by hand",
		Title:  "{channel}: {value}, not {wanted}",
		Advice: "Someone has operated it by hand. Send the command again if that was not meant.",
	},
	Failed: {
		Many:   "Commands failed",
		Title:  "{channel}: not set to {wanted}",
		Advice: "The hub gave up. The device may be out of reach. Send the command again.",
	},
	Device: {
		Title:  "Out of reach",
		Advice: "Check the device's power or battery, and that nothing blocks the radio.",
	},
	Offline: {
		Title:  "Hub offline",
		Advice: "Nothing is seen or controlled there. Check the hub's power and network.",
	},
	NotHeard: {
		Title:  "Hub does not report",
		Advice: "It is connected, but new events do not arrive. Restart the hub.",
	},
}
