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

// kinds are all kinds of device. Together they have a channel of every key.
var kinds = map[string]kind{
	"lock":              lock,
	"garage_door":       garageDoor,
	"keypad":            keypad,
	"contact_sensor":    contactSensor,
	"switch":            gangedSwitch,
	"dimmer":            dimmer,
	"color_bulb":        colorBulb,
	"outlet":            outlet,
	"shade":             shade,
	"thermostat":        thermostat,
	"climate_sensor":    climateSensor,
	"leak_sensor":       leakSensor,
	"smoke_alarm":       smokeAlarm,
	"electricity_meter": electricityMeter,
	"water_meter":       waterMeter,
	"gas_meter":         gasMeter,
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

// number returns the value of a channel at endpoint 0; 0 if it has none. flag and text do the same.
func (d *Device) number(key string) float64 {
	if c := d.Channel(Ref{Key: key}); c != nil {
		n, _ := c.Value.(float64)
		return n
	}
	return 0
}

func (d *Device) flag(key string) bool {
	if c := d.Channel(Ref{Key: key}); c != nil {
		on, _ := c.Value.(bool)
		return on
	}
	return false
}

func (d *Device) text(key string) string {
	if c := d.Channel(Ref{Key: key}); c != nil {
		s, _ := c.Value.(string)
		return s
	}
	return ""
}

// chance returns true with probability p.
func (d *Device) chance(p float64) bool { return d.rnd.Float64() < p }

// wander moves a number by a random amount up to step in either direction, within low and high.
func (d *Device) wander(from, step, low, high float64) float64 {
	return min(max(from+(d.rnd.Float64()*2-1)*step, low), high)
}

// drain occasionally lowers the battery by a percent.
func (d *Device) drain() []reading {
	if left := d.number("battery"); left > 1 && d.chance(0.02) {
		return []reading{d.read("battery", left-1)}
	}
	return nil
}

// round rounds n to a multiple of step, the resolution of a sensor.
func round(n, step float64) float64 {
	steps := math.Round(n / step)
	return math.Round(steps*step*1e6) / 1e6
}
