package device

import "time"

// thermostat controls a room whose temperature drifts towards that outside, by heating and cooling
// towards the setpoints.
var thermostat = kind{
	name: "Thermostat", manufacturer: "Aerotherm", model: "T3",
	channels: func(s Spec) []Channel {
		l := s.limits()
		heating := channel("heating_setpoint", min(max(21.0, l.Min), l.Max))
		cooling := channel("cooling_setpoint", min(max(25.0, l.Min), l.Max))
		heating.limits, cooling.limits = &l, &l
		mode, fan := channel("mode", "heat"), channel("fan_mode", "auto_low")
		mode.choices = []string{"off", "heat", "cool", "auto", "eco"}
		fan.choices = []string{"auto_low", "auto_high", "low", "high", "circulation"}
		return []Channel{
			mode, heating, cooling, fan, channel("operating_state", "idle"),
			channel("fan_state", "idle"),
			channel("temperature", 19.4), channel("humidity", 44.0), channel("battery", 90.0),
		}
	},
	latency:      300 * time.Millisecond,
	afterCommand: func(d *Device, r reading) []reading { return d.climate(r) },
	every:        4 * time.Second,
	sample: func(d *Device) []reading {
		const outside = 16.0
		t := d.number("temperature")
		step := (outside - t) * 0.01
		switch d.text("operating_state") {
		case "heating":
			step += 0.2
		case "cooling":
			step -= 0.25
		}
		// The sensor reports tenths of a degree. The rest is remembered: otherwise a slow drift
		// would never show.
		rest := d.memory["temperature"] + step
		next := round(t+rest, 0.1)
		d.memory["temperature"] = rest - (next - t)
		readings := []reading{d.read("temperature", next)}
		if d.chance(0.15) {
			readings = append(
				readings,
				d.read("humidity", round(d.wander(d.number("humidity"), 1.5, 30, 65), 0.5)),
			)
		}
		return append(readings, append(d.climate(readings[0]), d.drain()...)...)
	},
}

// climate returns changes of the operating and fan state after the reading latest, which is not yet
// in the channels. Half a degree of hysteresis prevents frequent switching.
func (d *Device) climate(latest reading) []reading {
	number := func(key string) float64 {
		if n, ok := latest.Value.(float64); ok && latest.Key == key {
			return n
		}
		return d.number(key)
	}
	text := func(key string) string {
		if s, ok := latest.Value.(string); ok && latest.Key == key {
			return s
		}
		return d.text(key)
	}
	temperature, mode, current := number("temperature"), text("mode"), d.text("operating_state")
	low, high := number("heating_setpoint"), number("cooling_setpoint")
	if mode == "eco" {
		low, high = low-3, high+3
	}
	both := mode == "auto" || mode == "eco"
	heats, cools := both || mode == "heat", both || mode == "cool"
	state := "idle"
	switch {
	case heats && (temperature < low-0.25 || current == "heating" && temperature < low+0.25):
		state = "heating"
	case cools && (temperature > high+0.25 || current == "cooling" && temperature > high-0.25):
		state = "cooling"
	}
	fan := "idle"
	switch fanMode := text("fan_mode"); {
	case fanMode == "low" || fanMode == "circulation":
		fan = "running_low"
	case fanMode == "high" || fanMode == "auto_high" && state != "idle":
		fan = "running_high"
	case state != "idle":
		fan = "running_low"
	}
	return append(d.follow("operating_state", state), d.follow("fan_state", fan)...)
}

// climateSensor measures the climate of a room and detects motion.
var climateSensor = kind{
	name: "Room sensor", manufacturer: "Sentire", model: "Multi 6",
	channels: fixed(
		channel("motion", false), channel("temperature", 20.8), channel("humidity", 41.0),
		channel("luminance", 180.0), channel("co2", 640.0), channel("tamper", false),
		channel("battery", 83.0),
	),
	every: 5 * time.Second,
	sample: func(d *Device) []reading {
		motion := d.flag("motion")
		if motion && d.chance(0.5) || !motion && d.chance(0.35) {
			motion = !motion
		}
		readings := d.follow("motion", motion)
		breath := -0.03
		if motion {
			breath = 0.04
		}
		switch d.rnd.IntN(4) {
		case 0:
			readings = append(
				readings,
				d.read("temperature", round(d.wander(d.number("temperature"), 0.25, 17, 26), 0.1)),
			)
		case 1:
			readings = append(
				readings, d.read("humidity", round(d.wander(d.number("humidity"), 1, 25, 70), 0.5)),
			)
		case 2:
			readings = append(
				readings,
				d.read("luminance", round(d.wander(d.number("luminance"), 30, 0, 900), 1)),
			)
		case 3:
			readings = append(
				readings,
				d.read("co2", round(d.wander(d.number("co2")*(1+breath), 8, 410, 1800), 1)),
			)
		}
		return append(readings, d.drain()...)
	},
}
