package client

import (
	"bytes"
	"encoding/json"
	"reflect"
)

// Value is what a channel reads or takes, as JSON. Which kind of value a channel has follows from
// its key: see the contract's table of channel keys. A nil Value is JSON's null: nothing reported,
// nothing asked.
type Value []byte

// Color is the value of a color channel. Each component is 0 to 255.
type Color struct {
	Red   int `json:"red"`
	Green int `json:"green"`
	Blue  int `json:"blue"`
	// WarmWhite is left alone by a command in which it is nil.
	WarmWhite *int `json:"warm_white,omitempty"`
}

// Alarm is the value of an alarm channel: one report.
type Alarm struct {
	Type   string `json:"type"`
	Event  string `json:"event"`
	Active bool   `json:"active"`
	// User is who it is about, as the hub names them: a number or a text; nil for nobody.
	User Value `json:"user"`
}

// Scene is the value of a scene channel: which scene, and what was done with its button.
type Scene struct {
	Scene     int    `json:"scene"`
	Attribute string `json:"attribute"`
}

// Bool gives the value of a lock, a switch, a sensor; false when it is no boolean.
func (v Value) Bool() (value, ok bool) { return decode[bool](v) }

// Number gives the value of a level, a setpoint, a reading; false when it is no number.
func (v Value) Number() (value float64, ok bool) { return decode[float64](v) }

// Text gives the value of a mode or a state; false when it is no string.
func (v Value) Text() (value string, ok bool) { return decode[string](v) }

// Color gives the value of a color channel; false when it is no such object.
func (v Value) Color() (value Color, ok bool) { return decode[Color](v) }

// Decode reads the value into what `into` points to, as encoding/json does.
func (v Value) Decode(into any) error { return json.Unmarshal(v.text(), into) }

// String gives the value as JSON text.
func (v Value) String() string { return string(v.text()) }

// MarshalJSON writes the value as it is.
func (v Value) MarshalJSON() ([]byte, error) { return v.text(), nil }

// UnmarshalJSON keeps the text of the value.
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

// decode reads a value that is a T and not null, which encoding/json would take for any T.
func decode[T any](v Value) (T, bool) {
	var value *T
	if json.Unmarshal(v.text(), &value) != nil || value == nil {
		var zero T
		return zero, false
	}
	return *value, true
}

// meets says whether a reported value is what was asked. Of an object only the members that were
// asked count: a color may be asked without its warm white.
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
