package device

import (
	"math"
	"time"

	"hubcloud/domain"
)

// gangedSwitch is one switch, or several at the endpoints 1, 2, ….
var gangedSwitch = kind{
	name: "Switch", manufacturer: "Lumen", model: "Gang",
	channels: func(s Spec) []Channel {
		if s.Gangs < 2 {
			return []Channel{channel("switch", false)}
		}
		var gangs []Channel
		for endpoint := 1; endpoint <= s.Gangs; endpoint++ {
			gangs = append(
				gangs,
				Channel{
					Ref:          Ref{Key: "switch", Endpoint: endpoint},
					ChannelState: domain.ChannelState{Value: false},
				},
			)
		}
		return gangs
	},
	latency: 80 * time.Millisecond,
}

// dimmer has a level and a switch that follow each other. Switched on, it returns to its last
// level.
var dimmer = kind{
	name: "Dimmer", manufacturer: "Lumen", model: "Fade",
	channels:     fixed(channel("switch", false), channel("level", 0.0)),
	latency:      150 * time.Millisecond,
	afterCommand: afterDimmerCommand,
}

// colorBulb is a dimmer with a color.
var colorBulb = kind{
	name: "Color bulb", manufacturer: "Lumen", model: "Spectrum",
	channels: fixed(
		channel("switch", true), channel("level", 80.0),
		channel("color", Color{Red: 255, Green: 180, Blue: 90}),
	),
	latency:      150 * time.Millisecond,
	afterCommand: afterDimmerCommand,
}

// afterDimmerCommand lets the switch follow the level and the level follow the switch.
func afterDimmerCommand(d *Device, r reading) []reading {
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

// follow returns a reading of a channel that follows another one, or none if its value is v
// already: a reading without a change would end the channel's own pending command.
func (d *Device) follow(key string, v Value) []reading {
	if c := d.Channel(Ref{Key: key}); c == nil || c.Value == v {
		return nil
	}
	return []reading{d.read(key, v)}
}

// outlet is a switched socket that meters, and whose button can be disabled.
var outlet = kind{
	name: "Outlet", manufacturer: "Lumen", model: "Socket M",
	channels: fixed(
		channel("switch", true), channel("local_protection", false), channel("power", 60.0),
		channel("energy", 12.4),
	),
	latency: 100 * time.Millisecond,
	afterCommand: func(d *Device, r reading) []reading {
		if on, ok := r.Value.(bool); ok && r.Key == "switch" && !on {
			return d.follow("power", 0.0)
		}
		return nil
	},
	every: 10 * time.Second,
	sample: func(d *Device) []reading {
		if !d.flag("switch") {
			return nil
		}
		power := round(d.wander(max(d.number("power"), 55), 6, 40, 90), 0.1)
		return append(d.accumulate("energy", power*10/3.6e6, 0.001), d.read("power", power))
	},
}

// fullTravel is how long a shade takes between its ends.
const fullTravel = 8 * time.Second

// shade moves at a constant speed and reports its position once it has stopped. A new command while
// it moves starts from where it is.
var shade = kind{
	name: "Shade", manufacturer: "Umbra", model: "Roll 1",
	channels: fixed(channel("position", 99.0), channel("battery", 64.0)),
	delay: func(d *Device, _ Ref, v Value) time.Duration {
		target, _ := v.(float64)
		return 200*time.Millisecond + time.Duration(
			math.Abs(target-d.position())/99*float64(fullTravel),
		)
	},
	interrupt: func(d *Device, a action, now time.Time) {
		target, _ := a.Value.(float64)
		if whole := a.Due.Sub(a.Since); whole > 0 {
			d.memory["position"] = d.position() + (target-d.position())*min(
				1, float64(now.Sub(a.Since))/float64(whole),
			)
		}
	},
	afterCommand: func(d *Device, _ reading) []reading {
		delete(d.memory, "position")
		return nil
	},
	every: time.Minute, sample: (*Device).drain,
}

// position returns where the shade is: where it was last interrupted, otherwise its last report.
func (d *Device) position() float64 {
	if p, ok := d.memory["position"]; ok {
		return p
	}
	return d.number("position")
}
