package virtualhub

import (
	"math"
	"time"
)

// drain occasionally lowers the battery by a percent.
func (d *device) drain() []reading {
	if left := d.number("battery"); left > 1 && d.chance(0.02) {
		return []reading{d.read("battery", left-1)}
	}
	return nil
}

// follow returns a reading of a channel that follows another one, or none if its value is v
// already: a reading without a change would end the channel's own pending command.
func (d *device) follow(key string, v any) []reading {
	if c := d.Channel(ChannelRef{Key: key}); c == nil || c.Value == v {
		return nil
	}
	return []reading{d.read(key, v)}
}

// accumulate adds more to a meter with a resolution of step. It remembers the rest for the next
// call.
func (d *device) accumulate(key string, more, step float64) []reading {
	rest := d.memory[key] + more
	steps := math.Floor(rest / step)
	d.memory[key] = rest - steps*step
	if steps == 0 {
		return nil
	}
	return []reading{d.read(key, round(d.number(key)+steps*step, step))}
}

// press presses a key of a keypad, or enters a code, now and then.
func (d *device) press() []reading {
	alarm := Alarm{Type: "access_control", Active: true}
	switch {
	case d.chance(0.3):
		attribute := "pressed"
		if d.chance(0.2) {
			attribute = "held"
		}
		return []reading{d.read("scene", Scene{Scene: 1 + d.rnd.IntN(4), Attribute: attribute})}
	case d.chance(0.1):
		alarm.Event, alarm.User = "keypad_code_accepted", 1+d.rnd.IntN(5)
		return []reading{d.read("alarm", alarm)}
	case d.chance(0.05):
		alarm.Event = "keypad_code_rejected"
		return []reading{d.read("alarm", alarm)}
	}
	return d.drain()
}

// dim lets the switch of a dimmer follow its level and the level its switch. Switched on, a dimmer
// returns to its last level.
func (d *device) dim(r reading) []reading {
	switch v := r.Value.(type) {
	case float64:
		if v > 0 {
			d.memory["level"] = v
		}
		return d.follow("switch", v > 0)
	case bool:
		if !v {
			if level := d.number("level"); level > 0 {
				d.memory["level"] = level
			}
			return d.follow("level", 0.0)
		}
		if d.number("level") > 0 {
			return nil
		}
		level := d.memory["level"]
		if level == 0 {
			level = 99
		}
		return d.follow("level", level)
	}
	return nil
}

// fullTravel is how long a shade takes between its ends.
const fullTravel = 8 * time.Second

// travel returns how long a shade takes to a position.
func (d *device) travel(_ ChannelRef, v any) time.Duration {
	target, _ := v.(float64)
	share := math.Abs(target-d.position()) / 99
	return 200*time.Millisecond + time.Duration(share*float64(fullTravel))
}

// stopTravel notes where a shade is when another command replaces one: it starts from there.
func (d *device) stopTravel(a action, now time.Time) {
	target, _ := a.Value.(float64)
	if whole := a.Due.Sub(a.Since); whole > 0 {
		d.memory["position"] = d.position() + (target-d.position())*min(
			1, float64(now.Sub(a.Since))/float64(whole),
		)
	}
}

// position returns where the shade is: where it was last interrupted, otherwise its last report.
func (d *device) position() float64 {
	if p, ok := d.memory["position"]; ok {
		return p
	}
	return d.number("position")
}

func thermostatChannels(s DeviceSpec) []channel {
	l := s.limits()
	heating := newChannel("heating_setpoint", min(max(21.0, l.Min), l.Max))
	cooling := newChannel("cooling_setpoint", min(max(25.0, l.Min), l.Max))
	heating.limits, cooling.limits = &l, &l
	mode, fan := newChannel("mode", "heat"), newChannel("fan_mode", "auto_low")
	mode.choices = []string{"off", "heat", "cool", "auto", "eco"}
	fan.choices = []string{"auto_low", "auto_high", "low", "high", "circulation"}
	return []channel{
		mode, heating, cooling, fan, newChannel("operating_state", "idle"),
		newChannel("fan_state", "idle"),
		newChannel("temperature", 19.4), newChannel("humidity", 44.0), newChannel("battery", 90.0),
	}
}

// sampleThermostat measures a room whose temperature drifts towards that outside, and heats and
// cools it towards the setpoints.
func (d *device) sampleThermostat() []reading {
	const outside = 16.0
	t := d.number("temperature")
	step := (outside - t) * 0.01
	switch d.text("operating_state") {
	case "heating":
		step += 0.2
	case "cooling":
		step -= 0.25
	}
	// The sensor reports tenths of a degree. The rest is remembered: otherwise a slow drift would
	// never show.
	rest := d.memory["temperature"] + step
	next := round(t+rest, 0.1)
	d.memory["temperature"] = rest - (next - t)
	readings := []reading{d.read("temperature", next)}
	if d.chance(0.15) {
		readings = append(readings, d.drift("humidity", 1.5, 30, 65, 0.5))
	}
	return append(readings, append(d.climate(readings[0]), d.drain()...)...)
}

// climate returns changes of the operating and fan state after the reading latest, which is not yet
// in the channels. Half a degree of hysteresis prevents frequent switching.
func (d *device) climate(latest reading) []reading {
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

// sampleRoom measures the climate of a room, one quantity at a time, and detects motion.
func (d *device) sampleRoom() []reading {
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
		readings = append(readings, d.drift("temperature", 0.25, 17, 26, 0.1))
	case 1:
		readings = append(readings, d.drift("humidity", 1, 25, 70, 0.5))
	case 2:
		readings = append(readings, d.drift("luminance", 30, 0, 900, 1))
	case 3:
		co2 := round(d.wander(d.number("co2")*(1+breath), 8, 410, 1800), 1)
		readings = append(readings, d.read("co2", co2))
	}
	return append(readings, d.drain()...)
}

// sampleHousehold measures the consumption of a household, which drifts and sometimes jumps.
func (d *device) sampleHousehold() []reading {
	power := d.wander(d.number("power"), 40, 120, 3400)
	if d.chance(0.06) { // a kettle is switched on or off
		if power > 1800 {
			power -= 1600
		} else {
			power += 1600
		}
	}
	power = round(power, 1)
	readings := append(d.accumulate("energy", power*3/3.6e6, 0.001), d.read("power", power))
	if d.chance(0.2) {
		voltage := round(d.wander(d.number("voltage"), 0.6, 226, 234), 0.1)
		readings = append(
			readings, d.read("voltage", voltage), d.read("current", round(power/voltage, 0.01)),
		)
	}
	return readings
}
