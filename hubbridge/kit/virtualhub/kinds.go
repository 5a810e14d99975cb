package virtualhub

import (
	"math"
	"time"

	"hubcloud/domain"
)

// kind is the behaviour that all devices of one kind share.
type kind struct {
	name, manufacturer, model string
	// channels returns the channels of a device with their first values, nil for a channel that has
	// not reported yet.
	channels func(DeviceSpec) []channel
	// latency is how long a command takes. delay, if set, computes it from the command.
	latency time.Duration
	delay   func(*device, ChannelRef, any) time.Duration
	// interrupt is called for a pending command that another one replaces.
	interrupt func(*device, action, time.Time)
	// afterCommand returns the readings that follow a command, in addition to the commanded
	// channel's own reading.
	afterCommand func(*device, reading) []reading
	// sample returns the readings that a device makes by itself at the interval every.
	every  time.Duration
	sample func(*device) []reading
}

// kinds is the table of all kinds of device. Together they have a channel of every key. A kind that
// has physics of its own names its functions, which are in physics.go.
var kinds = map[string]kind{
	"lock": { // a deadbolt with its own keypad
		name: "Lock", manufacturer: "Castellan", model: "Bolt 2",
		channels: fixed(newChannel("lock", true), newChannel("alarm", nil), newChannel("battery", 88.0)),
		latency:  600 * time.Millisecond, every: time.Minute, sample: (*device).drain,
	},
	"garage_door": { // takes seconds to move, and reports once it has stopped
		name: "Garage door", manufacturer: "Portcullis", model: "GD-40",
		channels: fixed(newChannel("barrier", false), newChannel("tamper", false)),
		latency:  4 * time.Second,
	},
	"keypad": { // reports key presses as scenes, and accepted and rejected codes as alarms
		name: "Keypad", manufacturer: "Castellan", model: "Touch 12",
		channels: fixed(
			newChannel("alarm", nil), newChannel("scene", nil), newChannel("tamper", false),
			newChannel("battery", 71.0),
		),
		every: 20 * time.Second, sample: (*device).press,
	},
	"contact_sensor": { // at a door that opens and closes now and then
		name: "Door contact", manufacturer: "Sentire", model: "Contact S",
		channels: fixed(
			newChannel("contact", false), newChannel("tamper", false), newChannel("battery", 95.0),
		),
		every: 8 * time.Second,
		sample: func(d *device) []reading {
			open := d.flag("contact")
			if open && d.chance(0.7) || !open && d.chance(0.12) {
				return []reading{d.read("contact", !open)}
			}
			return d.drain()
		},
	},
	"switch": { // one switch, or several at the endpoints 1, 2, …
		name: "Switch", manufacturer: "Lumen", model: "Gang",
		channels: func(s DeviceSpec) []channel {
			if s.Gangs < 2 {
				return []channel{newChannel("switch", false)}
			}
			gangs := make([]channel, s.Gangs)
			for i := range gangs {
				gangs[i] = newChannel("switch", false)
				gangs[i].Endpoint = i + 1
			}
			return gangs
		},
		latency: 80 * time.Millisecond,
	},
	"dimmer": {
		name: "Dimmer", manufacturer: "Lumen", model: "Fade",
		channels: fixed(newChannel("switch", false), newChannel("level", 0.0)),
		latency:  150 * time.Millisecond, afterCommand: (*device).dim,
	},
	"color_bulb": { // a dimmer with a color
		name: "Color bulb", manufacturer: "Lumen", model: "Spectrum",
		channels: fixed(
			newChannel("switch", true), newChannel("level", 80.0),
			newChannel("color", Color{Red: 255, Green: 180, Blue: 90}),
		),
		latency: 150 * time.Millisecond, afterCommand: (*device).dim,
	},
	"outlet": { // a switched socket that meters, and whose button can be disabled
		name: "Outlet", manufacturer: "Lumen", model: "Socket M",
		channels: fixed(
			newChannel("switch", true), newChannel("local_protection", false), newChannel("power", 60.0),
			newChannel("energy", 12.4),
		),
		latency: 100 * time.Millisecond,
		afterCommand: func(d *device, r reading) []reading {
			if on, ok := r.Value.(bool); ok && r.Key == "switch" && !on {
				return d.follow("power", 0.0)
			}
			return nil
		},
		every: 10 * time.Second,
		sample: func(d *device) []reading {
			if !d.flag("switch") {
				return nil
			}
			power := round(d.wander(max(d.number("power"), 55), 6, 40, 90), 0.1)
			return append(d.accumulate("energy", power*10/3.6e6, 0.001), d.read("power", power))
		},
	},
	"shade": { // moves at a constant speed and reports its position once it has stopped
		name: "Shade", manufacturer: "Umbra", model: "Roll 1",
		channels: fixed(newChannel("position", 99.0), newChannel("battery", 64.0)),
		delay:    (*device).travel, interrupt: (*device).stopTravel,
		afterCommand: func(d *device, _ reading) []reading {
			delete(d.memory, "position")
			return nil
		},
		every: time.Minute, sample: (*device).drain,
	},
	"thermostat": {
		name: "Thermostat", manufacturer: "Aerotherm", model: "T3",
		channels: thermostatChannels,
		latency:  300 * time.Millisecond, afterCommand: (*device).climate,
		every: 4 * time.Second, sample: (*device).sampleThermostat,
	},
	"climate_sensor": { // measures the climate of a room and detects motion
		name: "Room sensor", manufacturer: "Sentire", model: "Multi 6",
		channels: fixed(
			newChannel("motion", false), newChannel("temperature", 20.8), newChannel("humidity", 41.0),
			newChannel("luminance", 180.0), newChannel("co2", 640.0), newChannel("tamper", false),
			newChannel("battery", 83.0),
		),
		every: 5 * time.Second, sample: (*device).sampleRoom,
	},
	"leak_sensor": { // stays dry until a Report changes it
		name: "Leak sensor", manufacturer: "Sentire", model: "Drop",
		channels: fixed(
			newChannel("leak", false), newChannel("temperature", 17.2), newChannel("tamper", false),
			newChannel("battery", 97.0),
		),
		every: 30 * time.Second,
		sample: func(d *device) []reading {
			return append(d.drain(), d.drift("temperature", 0.2, 12, 22, 0.1))
		},
	},
	"smoke_alarm": { // stays silent until a Report changes it
		name: "Smoke alarm", manufacturer: "Vigil", model: "SC-2",
		channels: fixed(
			newChannel("smoke", false), newChannel("co", false), newChannel("heat", false),
			newChannel("alarm", nil), newChannel("tamper", false), newChannel("battery", 100.0),
		),
		every: time.Minute, sample: (*device).drain,
	},
	"electricity_meter": {
		name: "Electricity meter", manufacturer: "Ampere", model: "EM-1",
		channels: fixed(
			newChannel("energy", 1834.2), newChannel("power", 420.0), newChannel("voltage", 230.1),
			newChannel("current", 1.83),
		),
		every: 3 * time.Second, sample: (*device).sampleHousehold,
	},
	"water_meter": { // water flows in a third of the samples
		name: "Water meter", manufacturer: "Ampere", model: "WM-1",
		channels: fixed(newChannel("water", 311.482), newChannel("battery", 92.0)),
		every:    15 * time.Second,
		sample: func(d *device) []reading {
			if d.chance(0.35) {
				return d.accumulate("water", 0.001+d.rnd.Float64()*0.02, 0.001)
			}
			return d.drain()
		},
	},
	"gas_meter": { // the gas of a boiler
		name: "Gas meter", manufacturer: "Ampere", model: "GM-1",
		channels: fixed(newChannel("gas", 4711.05), newChannel("battery", 94.0)),
		every:    20 * time.Second,
		sample: func(d *device) []reading {
			if d.chance(0.5) {
				return d.accumulate("gas", 0.005+d.rnd.Float64()*0.01, 0.01)
			}
			return d.drain()
		},
	},
}

// newChannel returns a channel at endpoint 0.
func newChannel(key string, first any) channel {
	return channel{ChannelRef: ChannelRef{Key: key}, ChannelState: domain.ChannelState{Value: first}}
}

// fixed is for kinds whose devices all have the same channels.
func fixed(channels ...channel) func(DeviceSpec) []channel {
	return func(DeviceSpec) []channel { return append([]channel(nil), channels...) }
}

func (d *device) read(key string, v any) reading { return reading{ChannelRef{Key: key}, v} }

// valueOf returns the value of a channel at endpoint 0; the zero T if it has none of that type.
func valueOf[T any](d *device, key string) (v T) {
	if c := d.Channel(ChannelRef{Key: key}); c != nil {
		v, _ = c.Value.(T)
	}
	return v
}

func (d *device) number(key string) float64 { return valueOf[float64](d, key) }
func (d *device) flag(key string) bool      { return valueOf[bool](d, key) }
func (d *device) text(key string) string    { return valueOf[string](d, key) }

// chance returns true with probability p.
func (d *device) chance(p float64) bool { return d.rnd.Float64() < p }

// wander moves a number by a random amount up to step in either direction, within low and high.
func (d *device) wander(from, step, low, high float64) float64 {
	return min(max(from+(d.rnd.Float64()*2-1)*step, low), high)
}

// drift returns a reading of a channel whose value wanders.
func (d *device) drift(key string, step, low, high, resolution float64) reading {
	return d.read(key, round(d.wander(d.number(key), step, low, high), resolution))
}

// round rounds n to a multiple of step, the resolution of a sensor.
func round(n, step float64) float64 {
	steps := math.Round(n / step)
	return math.Round(steps*step*1e6) / 1e6
}
