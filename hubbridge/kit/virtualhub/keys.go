package virtualhub

// shape is the form of a channel key's values.
type shape int

const (
	shapeBoolean shape = iota
	shapePercent       // integer, 0 to 99
	shapeNumber
	shapeText
	shapeColor
	shapeAlarm
	shapeScene
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
	{name: "lock", shape: shapeBoolean, writable: true},
	{name: "barrier", shape: shapeBoolean, writable: true},
	{name: "switch", shape: shapeBoolean, writable: true},
	{name: "level", shape: shapePercent, unit: "%", writable: true},
	{name: "position", shape: shapePercent, unit: "%", writable: true},
	{name: "color", shape: shapeColor, writable: true},
	{name: "mode", shape: shapeText, writable: true},
	{name: "heating_setpoint", shape: shapeNumber, unit: "°C", writable: true},
	{name: "cooling_setpoint", shape: shapeNumber, unit: "°C", writable: true},
	{name: "fan_mode", shape: shapeText, writable: true},
	{name: "local_protection", shape: shapeBoolean, writable: true},
	{name: "operating_state", shape: shapeText},
	{name: "fan_state", shape: shapeText},
	{name: "temperature", shape: shapeNumber, unit: "°C"},
	{name: "humidity", shape: shapeNumber, unit: "%"},
	{name: "luminance", shape: shapeNumber, unit: "lx"},
	{name: "co2", shape: shapeNumber, unit: "ppm"},
	{name: "contact", shape: shapeBoolean},
	{name: "motion", shape: shapeBoolean},
	{name: "leak", shape: shapeBoolean},
	{name: "smoke", shape: shapeBoolean},
	{name: "co", shape: shapeBoolean},
	{name: "heat", shape: shapeBoolean},
	{name: "tamper", shape: shapeBoolean},
	{name: "battery", shape: shapeNumber, unit: "%"},
	{name: "energy", shape: shapeNumber, unit: "kWh"},
	{name: "power", shape: shapeNumber, unit: "W"},
	{name: "voltage", shape: shapeNumber, unit: "V"},
	{name: "current", shape: shapeNumber, unit: "A"},
	{name: "water", shape: shapeNumber, unit: "m³"},
	{name: "gas", shape: shapeNumber, unit: "m³"},
	{name: "alarm", shape: shapeAlarm, everyReport: true},
	{name: "scene", shape: shapeScene, everyReport: true},
})

func byName(list []key) map[string]key {
	m := make(map[string]key, len(list))
	for _, k := range list {
		m[k.name] = k
	}
	return m
}
