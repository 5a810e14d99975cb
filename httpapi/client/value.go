package client

import (
	"bytes"
	"encoding/json"
	"reflect"
)

// Value is the value of a channel, as JSON. The contract's table of channel keys says which kind of
// value a channel has. A nil Value is null: nothing has been reported or asked for.
type Value []byte

// Color is the value of a color channel. Each component is 0 to 255.
type Color struct {
	Red   int `json:"red"`
	Green int `json:"green"`
	Blue  int `json:"blue"`
	// WarmWhite may be nil in a command, which leaves it unchanged.
	WarmWhite *int `json:"warm_white,omitempty"`
}

// Alarm is the value of an alarm channel: one report.
type Alarm struct {
	Type   string `json:"type"`
	Event  string `json:"event"`
	Active bool   `json:"active"`
	// User identifies a person as the hub does, by a number or a string; nil if the report is about
	// no one.
	User Value `json:"user"`
}

// Scene is the value of a scene channel: which scene, and what happened to its button.
type Scene struct {
	Scene     int    `json:"scene"`
	Attribute string `json:"attribute"`
}

// Bool returns the value of a lock, switch or sensor, and false if it is not a boolean.
func (v Value) Bool() (value, ok bool) { return decode[bool](v) }

// Number returns the value of a level, setpoint or reading, and false if it is not a number.
func (v Value) Number() (value float64, ok bool) { return decode[float64](v) }

// Text returns the value of a mode or state, and false if it is not a string.
func (v Value) Text() (value string, ok bool) { return decode[string](v) }

// Color returns the value of a color channel, and false if it is not such an object.
func (v Value) Color() (value Color, ok bool) { return decode[Color](v) }

// Decode decodes the value into `into`, as encoding/json does.
func (v Value) Decode(into any) error { return json.Unmarshal(v.text(), into) }

// String returns the value as JSON.
func (v Value) String() string { return string(v.text()) }

// MarshalJSON returns the value unchanged.
func (v Value) MarshalJSON() ([]byte, error) { return v.text(), nil }

// UnmarshalJSON keeps a copy of the JSON.
func (v *Value) UnmarshalJSON(text []byte) error {
	*v = nil
	if !bytes.Equal(text, null) {
		*v = bytes.Clone(text)
	}
	return nil
}

var null = []byte("null")

func (v Value) text() []byte {
	if len(v) == 0 {
		return null
	}
	return v
}

// decode decodes a value that is a T and not null, which encoding/json would accept for any T.
func decode[T any](v Value) (T, bool) {
	var value *T
	if json.Unmarshal(v.text(), &value) != nil || value == nil {
		var zero T
		return zero, false
	}
	return *value, true
}

// meets reports whether a reported value is the desired one. For objects only the desired members
// count: a color may be desired without its warm white.
func (v Value) meets(asked Value) bool {
	var is, want any
	if v.Decode(&is) != nil || asked.Decode(&want) != nil {
		return false
	}
	members, ok := want.(map[string]any)
	if !ok {
		return reflect.DeepEqual(is, want)
	}
	has, ok := is.(map[string]any)
	if !ok {
		return false
	}
	for name, value := range members {
		if other, ok := has[name]; !ok || !reflect.DeepEqual(other, value) {
			return false
		}
	}
	return true
}
