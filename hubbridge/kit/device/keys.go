package device

// shape is the form of a channel key's values.
type shape int

const (
	boolean shape = iota
	percent       // integer, 0 to 99
	number
	text
	color
	alarm
	scene
)

// key is what all channels of one key have in common.
type key struct {
	name     string
	shape    shape
	unit     string // "" is null in JSON
	writable bool
	// everyReport makes each report an event, even one that repeats the last value.
	everyReport bool
}

// keys are the channel keys of the API contract. The cloud has its own list, domain/channelkey.go,
// so that a mistake in one shows in the tests.
var keys = byName([]key{
	{name: "lock", shape: boolean, writable: true},
	{name: "barrier", shape: boolean, writable: true},
	{name: "switch", shape: boolean, writable: true},
	{name: "level", shape: percent, unit: "%", writable: true},
	{name: "position", shape: percent, unit: "%", writable: true},
	{name: "color", shape: color, writable: true},
	{name: "mode", shape: text, writable: true},
	{name: "heating_setpoint", shape: number, unit: "°C", writable: true},
	{name: "cooling_setpoint", shape: number, unit: "°C", writable: true},
	{name: "fan_mode", shape: text, writable: true},
	{name: "local_protection", shape: boolean, writable: true},
	{name: "operating_state", shape: text},
	{name: "fan_state", shape: text},
	{name: "temperature", shape: number, unit: "°C"},
	{name: "humidity", shape: number, unit: "%"},
	{name: "luminance", shape: number, unit: "lx"},
	{name: "co2", shape: number, unit: "ppm"},
	{name: "contact", shape: boolean},
	{name: "motion", shape: boolean},
	{name: "leak", shape: boolean},
	{name: "smoke", shape: boolean},
	{name: "co", shape: boolean},
	{name: "heat", shape: boolean},
	{name: "tamper", shape: boolean},
	{name: "battery", shape: number, unit: "%"},
	{name: "energy", shape: number, unit: "kWh"},
	{name: "power", shape: number, unit: "W"},
	{name: "voltage", shape: number, unit: "V"},
	{name: "current", shape: number, unit: "A"},
	{name: "water", shape: number, unit: "m³"},
	{name: "gas", shape: number, unit: "m³"},
	{name: "alarm", shape: alarm, everyReport: true},
	{name: "scene", shape: scene, everyReport: true},
})

func byName(list []key) map[string]key {
	m := make(map[string]key, len(list))
	for _, k := range list {
		m[k.name] = k
	}
	return m
}

// Keys returns the names of all channel keys, in no particular order.
func Keys() []string {
	names := make([]string, 0, len(keys))
	for name := range keys {
		names = append(names, name)
	}
	return names
}
