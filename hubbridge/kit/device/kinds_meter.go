package device

import (
	"math"
	"time"
)

// electricityMeter measures the consumption of a household, which drifts and sometimes jumps.
var electricityMeter = kind{
	name: "Electricity meter", manufacturer: "Ampere", model: "EM-1",
	channels: fixed(
		channel("energy", 1834.2), channel("power", 420.0), channel("voltage", 230.1),
		channel("current", 1.83),
	),
	every: 3 * time.Second,
	sample: func(d *Device) []reading {
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
	},
}

// waterMeter measures water, which flows in a third of the samples.
var waterMeter = kind{
	name: "Water meter", manufacturer: "Ampere", model: "WM-1",
	channels: fixed(channel("water", 311.482), channel("battery", 92.0)),
	every:    15 * time.Second,
	sample: func(d *Device) []reading {
		if d.chance(0.35) {
			return d.accumulate("water", 0.001+d.rnd.Float64()*0.02, 0.001)
		}
		return d.drain()
	},
}

// gasMeter measures the gas of a boiler.
var gasMeter = kind{
	name: "Gas meter", manufacturer: "Ampere", model: "GM-1",
	channels: fixed(channel("gas", 4711.05), channel("battery", 94.0)),
	every:    20 * time.Second,
	sample: func(d *Device) []reading {
		if d.chance(0.5) {
			return d.accumulate("gas", 0.005+d.rnd.Float64()*0.01, 0.01)
		}
		return d.drain()
	},
}

// accumulate adds more to a meter with a resolution of step. It remembers the rest for the next
// call.
func (d *Device) accumulate(key string, more, step float64) []reading {
	rest := d.memory[key] + more
	steps := math.Floor(rest / step)
	d.memory[key] = rest - steps*step
	if steps == 0 {
		return nil
	}
	return []reading{d.read(key, round(d.number(key)+steps*step, step))}
}
