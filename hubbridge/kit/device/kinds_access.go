package device

import "time"

// lock is a deadbolt with its own keypad.
var lock = kind{
	name: "Lock", manufacturer: "Castellan", model: "Bolt 2",
	channels: fixed(channel("lock", true), channel("alarm", nil), channel("battery", 88.0)),
	latency:  600 * time.Millisecond,
	every:    time.Minute, sample: (*Device).drain,
}

// garageDoor takes seconds to move, and reports once it has stopped.
var garageDoor = kind{
	name: "Garage door", manufacturer: "Portcullis", model: "GD-40",
	channels: fixed(channel("barrier", false), channel("tamper", false)),
	latency:  4 * time.Second,
}

// keypad reports key presses as scenes, and accepted and rejected codes as alarms.
var keypad = kind{
	name: "Keypad", manufacturer: "Castellan", model: "Touch 12",
	channels: fixed(
		channel("alarm", nil), channel("scene", nil), channel("tamper", false),
		channel("battery", 71.0),
	),
	every: 20 * time.Second,
	sample: func(d *Device) []reading {
		switch {
		case d.chance(0.3):
			attribute := "pressed"
			if d.chance(0.2) {
				attribute = "held"
			}
			return []reading{d.read("scene", Scene{Scene: 1 + d.rnd.IntN(4), Attribute: attribute})}
		case d.chance(0.1):
			return []reading{
				d.read(
					"alarm",
					Alarm{
						Type:   "access_control",
						Event:  "keypad_code_accepted",
						Active: true,
						User:   1 + d.rnd.IntN(5),
					},
				),
			}
		case d.chance(0.05):
			return []reading{
				d.read(
					"alarm",
					Alarm{Type: "access_control", Event: "keypad_code_rejected", Active: true},
				),
			}
		}
		return d.drain()
	},
}

// contactSensor is at a door that opens and closes now and then.
var contactSensor = kind{
	name: "Door contact", manufacturer: "Sentire", model: "Contact S",
	channels: fixed(channel("contact", false), channel("tamper", false), channel("battery", 95.0)),
	every:    8 * time.Second,
	sample: func(d *Device) []reading {
		open := d.flag("contact")
		if open && d.chance(0.7) || !open && d.chance(0.12) {
			return []reading{d.read("contact", !open)}
		}
		return d.drain()
	},
}
