package device

import (
	"math"
	"time"

	"hubcloud/domain"
)

// kind is what all devices of one kind have in common.
type kind struct {
	name, manufacturer, model string
	// channels are the channels of a device with their first values; nil: the channel has not
	// reported yet.
	channels func(Spec) []Channel
	// latency is how long a command takes, delay the same for kinds where it depends on what is
	// asked.
	latency time.Duration
	delay   func(*Device, Ref, Value) time.Duration
	// interrupt is told of a command under way that another replaces.
	interrupt func(*Device, action, time.Time)
	// settle gives the readings that follow the reading of what was asked.
	settle func(*Device, reading) []reading
	// sample gives the readings that a device makes by itself every so often.
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

// channel makes a channel at endpoint 0.
func channel(key string, first Value) Channel {
	return Channel{Ref: Ref{Key: key}, ChannelState: domain.ChannelState{Value: first}}
}

// fixed makes the channels of a kind whose devices are all alike.
func fixed(channels ...Channel) func(Spec) []Channel {
	return func(Spec) []Channel { return append([]Channel(nil), channels...) }
}

func (d *Device) read(key string, v Value) reading { return reading{Ref{Key: key}, v} }

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

// chance is true with probability p.
func (d *Device) chance(p float64) bool { return d.rnd.Float64() < p }

// wander takes a number a random step of at most step further, kept between low and high.
func (d *Device) wander(from, step, low, high float64) float64 {
	return min(max(from+(d.rnd.Float64()*2-1)*step, low), high)
}

// drain is a battery that loses a percent once in a long while.
func (d *Device) drain() []reading {
	if left := d.number("battery"); left > 1 && d.chance(0.02) {
		return []reading{d.read("battery", left-1)}
	}
	return nil
}

// round rounds to a multiple of step, the resolution of a sensor.
func round(n, step float64) float64 {
	steps := math.Round(n / step)
	return math.Round(steps*step*1e6) / 1e6
}
