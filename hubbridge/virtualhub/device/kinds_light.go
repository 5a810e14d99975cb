package device

import (
	"math"
	"time"

	"hubcloud/domain"
)

// gangedSwitch: one switch, or several at the endpoints 1, 2, ….
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

// dimmer: its level and its switch move together; switched on again it goes back to its last level.
var dimmer = kind{
	name: "Dimmer", manufacturer: "Lumen", model: "Fade",
	channels: fixed(channel("switch", false), channel("level", 0.0)),
	latency:  150 * time.Millisecond,
	settle:   settleDimmer,
}

// colorBulb is a dimmer with a color.
var colorBulb = kind{
	name: "Color bulb", manufacturer: "Lumen", model: "Spectrum",
	channels: fixed(
		channel("switch", true), channel("level", 80.0),
		channel("color", Color{Red: 255, Green: 180, Blue: 90}),
	),
	latency: 150 * time.Millisecond,
	settle:  settleDimmer,
}

func settleDimmer(d *Device, r reading) []reading {
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

// follow is a reading of a channel that moves with another: only when it does move, since its own
// command may be under way.
func (d *Device) follow(key string, v Value) []reading {
	if c := d.Channel(Ref{Key: key}); c == nil || c.Value == v {
		return nil
	}
	return []reading{d.read(key, v)}
}

// outlet: a switched socket that measures, and whose button can be locked out.
var outlet = kind{
	name: "Outlet", manufacturer: "Lumen", model: "Socket M",
	channels: fixed(
		channel("switch", true), channel("local_protection", false), channel("power", 60.0),
		channel("energy", 12.4),
	),
	latency: 100 * time.Millisecond,
	settle: func(d *Device, r reading) []reading {
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

// fullTravel is how long a shade takes from one end to the other.
const fullTravel = 8 * time.Second

// shade: it moves at a steady speed and reports its position when it has come to rest. Sent
// elsewhere on its way, it turns where it is.
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
	settle: func(d *Device, _ reading) []reading {
		delete(d.memory, "position")
		return nil
	},
	every: time.Minute, sample: (*Device).drain,
}

// position is where the shade is: where it turned around on its way, otherwise what it last
// reported.
func (d *Device) position() float64 {
	if p, ok := d.memory["position"]; ok {
		return p
	}
	return d.number("position")
}
