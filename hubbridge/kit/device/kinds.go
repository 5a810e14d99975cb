package device

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
	channels func(Spec) []Channel
	// latency is how long a command takes. delay, if set, computes it from the command.
	latency time.Duration
	delay   func(*Device, Ref, Value) time.Duration
	// interrupt is called for a pending command that another one replaces.
	interrupt func(*Device, action, time.Time)
	// afterCommand returns the readings that follow a command, in addition to the commanded
	// channel's own reading.
	afterCommand func(*Device, reading) []reading
	// sample returns the readings that a device makes by itself at the interval every.
	every  time.Duration
	sample func(*Device) []reading
}

// kinds is the table of all kinds of device. Together they have a channel of every key. A kind that
// has physics of its own names its functions, which are in physics.go.
var kinds = map[string]kind{
	"lock": { // a deadbolt with its own keypad
		name: "Lock", manufacturer: "Castellan", model: "Bolt 2",
		channels: fixed(channel("lock", true), channel("alarm", nil), channel("battery", 88.0)),
		latency:  600 * time.Millisecond, every: time.Minute, sample: (*Device).drain,
	},
	"garage_door": { // takes seconds to move, and reports once it has stopped
		name: "Garage door", manufacturer: "Portcullis", model: "GD-40",
		channels: fixed(channel("barrier", false), channel("tamper", false)),
		latency:  4 * time.Second,
	},
	"keypad": { // reports key presses as scenes, and accepted and rejected codes as alarms
		name: "Keypad", manufacturer: "Castellan", model: "Touch 12",
		channels: fixed(
			channel("alarm", nil), channel("scene", nil), channel("tamper", false),
			channel("battery", 71.0),
		),
		every: 20 * time.Second, sample: (*Device).press,
	},
	"contact_sensor": { // at a door that opens and closes now and then
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
	},
	"switch": { // one switch, or several at the endpoints 1, 2, …
		name: "Switch", manufacturer: "Lumen", model: "Gang",
		channels: func(s Spec) []Channel {
			if s.Gangs < 2 {
				return []Channel{channel("switch", false)}
			}
			gangs := make([]Channel, s.Gangs)
			for i := range gangs {
				gangs[i] = channel("switch", false)
				gangs[i].Endpoint = i + 1
			}
			return gangs
		},
		latency: 80 * time.Millisecond,
	},
	"dimmer": {
		name: "Dimmer", manufacturer: "Lumen", model: "Fade",
		channels: fixed(channel("switch", false), channel("level", 0.0)),
		latency:  150 * time.Millisecond, afterCommand: (*Device).dim,
	},
	"color_bulb": { // a dimmer with a color
		name: "Color bulb", manufacturer: "Lumen", model: "Spectrum",
		channels: fixed(
			channel("switch", true), channel("level", 80.0),
			channel("color", Color{Red: 255, Green: 180, Blue: 90}),
		),
		latency: 150 * time.Millisecond, afterCommand: (*Device).dim,
	},
	"outlet": { // a switched socket that meters, and whose button can be disabled
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
	},
	"shade": { // moves at a constant speed and reports its position once it has stopped
		name: "Shade", manufacturer: "Umbra", model: "Roll 1",
		channels: fixed(channel("position", 99.0), channel("battery", 64.0)),
		delay:    (*Device).travel, interrupt: (*Device).stopTravel,
		afterCommand: func(d *Device, _ reading) []reading {
			delete(d.memory, "position")
			return nil
		},
		every: time.Minute, sample: (*Device).drain,
	},
	"thermostat": {
		name: "Thermostat", manufacturer: "Aerotherm", model: "T3",
		channels: thermostatChannels,
		latency:  300 * time.Millisecond, afterCommand: (*Device).climate,
		every: 4 * time.Second, sample: (*Device).sampleThermostat,
	},
	"climate_sensor": { // measures the climate of a room and detects motion
		name: "Room sensor", manufacturer: "Sentire", model: "Multi 6",
		channels: fixed(
			channel("motion", false), channel("temperature", 20.8), channel("humidity", 41.0),
			channel("luminance", 180.0), channel("co2", 640.0), channel("tamper", false),
			channel("battery", 83.0),
		),
		every: 5 * time.Second, sample: (*Device).sampleRoom,
	},
	"leak_sensor": { // stays dry until a Report changes it
		name: "Leak sensor", manufacturer: "Sentire", model: "Drop",
		channels: fixed(
			channel("leak", false), channel("temperature", 17.2), channel("tamper", false),
			channel("battery", 97.0),
		),
		every: 30 * time.Second,
		sample: func(d *Device) []reading {
			return append(d.drain(), d.drift("temperature", 0.2, 12, 22, 0.1))
		},
	},
	"smoke_alarm": { // stays silent until a Report changes it
		name: "Smoke alarm", manufacturer: "Vigil", model: "SC-2",
		channels: fixed(
			channel("smoke", false), channel("co", false), channel("heat", false),
			channel("alarm", nil), channel("tamper", false), channel("battery", 100.0),
		),
		every: time.Minute, sample: (*Device).drain,
	},
	"electricity_meter": {
		name: "Electricity meter", manufacturer: "Ampere", model: "EM-1",
		channels: fixed(
			channel("energy", 1834.2), channel("power", 420.0), channel("voltage", 230.1),
			channel("current", 1.83),
		),
		every: 3 * time.Second, sample: (*Device).sampleHousehold,
	},
	"water_meter": { // water flows in a third of the samples
		name: "Water meter", manufacturer: "Ampere", model: "WM-1",
		channels: fixed(channel("water", 311.482), channel("battery", 92.0)),
		every:    15 * time.Second,
		sample: func(d *Device) []reading {
			if d.chance(0.35) {
				return d.accumulate("water", 0.001+d.rnd.Float64()*0.02, 0.001)
			}
			return d.drain()
		},
	},
	"gas_meter": { // the gas of a boiler
		name: "Gas meter", manufacturer: "Ampere", model: "GM-1",
		channels: fixed(channel("gas", 4711.05), channel("battery", 94.0)),
		every:    20 * time.Second,
		sample: func(d *Device) []reading {
			if d.chance(0.5) {
				return d.accumulate("gas", 0.005+d.rnd.Float64()*0.01, 0.01)
			}
			return d.drain()
		},
	},
}

// channel returns a channel at endpoint 0.
func channel(key string, first Value) Channel {
	return Channel{Ref: Ref{Key: key}, ChannelState: domain.ChannelState{Value: first}}
}

// fixed is for kinds whose devices all have the same channels.
func fixed(channels ...Channel) func(Spec) []Channel {
	return func(Spec) []Channel { return append([]Channel(nil), channels...) }
}

func (d *Device) read(key string, v Value) reading { return reading{Ref{Key: key}, v} }

// valueOf returns the value of a channel at endpoint 0; the zero T if it has none of that type.
func valueOf[T any](d *Device, key string) (v T) {
	if c := d.Channel(Ref{Key: key}); c != nil {
		v, _ = c.Value.(T)
	}
	return v
}

func (d *Device) number(key string) float64 { return valueOf[float64](d, key) }
func (d *Device) flag(key string) bool      { return valueOf[bool](d, key) }
func (d *Device) text(key string) string    { return valueOf[string](d, key) }

// chance returns true with probability p.
func (d *Device) chance(p float64) bool { return d.rnd.Float64() < p }

// wander moves a number by a random amount up to step in either direction, within low and high.
func (d *Device) wander(from, step, low, high float64) float64 {
	return min(max(from+(d.rnd.Float64()*2-1)*step, low), high)
}

// drift returns a reading of a channel whose value wanders.
func (d *Device) drift(key string, step, low, high, resolution float64) reading {
	return d.read(key, round(d.wander(d.number(key), step, low, high), resolution))
}

// round rounds n to a multiple of step, the resolution of a sensor.
func round(n, step float64) float64 {
	steps := math.Round(n / step)
	return math.Round(steps*step*1e6) / 1e6
}
