package device

import "time"

// leakSensor stays dry until a Report changes it.
var leakSensor = kind{
	name: "Leak sensor", manufacturer: "Sentire", model: "Drop",
	channels: fixed(
		channel("leak", false), channel("temperature", 17.2), channel("tamper", false),
		channel("battery", 97.0),
	),
	every: 30 * time.Second,
	sample: func(d *Device) []reading {
		return append(
			d.drain(),
			d.read("temperature", round(d.wander(d.number("temperature"), 0.2, 12, 22), 0.1)),
		)
	},
}

// smokeAlarm stays silent until a Report changes it.
var smokeAlarm = kind{
	name: "Smoke alarm", manufacturer: "Vigil", model: "SC-2",
	channels: fixed(
		channel("smoke", false), channel("co", false), channel("heat", false),
		channel("alarm", nil), channel("tamper", false), channel("battery", 100.0),
	),
	every: time.Minute, sample: (*Device).drain,
}
