package virtualhub

import (
	"encoding/json"
	"fmt"
	"math"
)

// Value is the value of a channel: nil (unknown), bool, float64, string, Color, Alarm or Scene. All
// are comparable with ==.
type Value any

// Color is the value of a color channel; each component is 0 to 255.
type Color struct {
	Red, Green, Blue int
	// WarmWhite is unchanged in a command without it.
	WarmWhite int
}

// unchanged is a color component that a command does not set.
const unchanged = -1

// MarshalJSON omits warm_white if it is unchanged.
func (c Color) MarshalJSON() ([]byte, error) {
	if c.WarmWhite == unchanged {
		return fmt.Appendf(nil, `{"red":%d,"green":%d,"blue":%d}`, c.Red, c.Green, c.Blue), nil
	}
	return fmt.Appendf(
		nil, `{"red":%d,"green":%d,"blue":%d,"warm_white":%d}`, c.Red, c.Green, c.Blue, c.WarmWhite,
	), nil
}

// Alarm is one report of an alarm channel.
type Alarm struct {
	Type   string
	Event  string
	Active bool
	// User is the number of the user whose code caused the alarm; 0 (null in JSON) for none.
	User int
}

type alarmJSON struct {
	Type   string `json:"type"`
	Event  string `json:"event"`
	Active bool   `json:"active"`
	User   *int   `json:"user"`
}

// MarshalJSON encodes user 0 as null.
func (a Alarm) MarshalJSON() ([]byte, error) {
	out := alarmJSON{Type: a.Type, Event: a.Event, Active: a.Active}
	if a.User != 0 {
		out.User = &a.User
	}
	return json.Marshal(out)
}

// Scene is one report of a scene channel: the number of the scene, and the gesture on its button,
// such as "pressed" or "held".
type Scene struct {
	Scene     int    `json:"scene"`
	Attribute string `json:"attribute"`
}

// Matches reports whether a reported color has the components of the desired color c. It implements
// domain.Desired.
func (c Color) Matches(reported any) bool {
	r, ok := reported.(Color)
	if c.WarmWhite == unchanged {
		r.WarmWhite = unchanged
	}
	return ok && r == c
}

// parse decodes a value of the given channel key. Its errors are shown to the sender of a command.
func parse(keyName string, raw json.RawMessage) (any, error) {
	k, ok := keys[keyName]
	if !ok {
		return nil, fmt.Errorf("unknown channel key %q", keyName)
	}
	switch k.shape {
	case shapeBoolean:
		if b, ok := decode[bool](raw); ok {
			return b, nil
		}
		return nil, fmt.Errorf("value of %s must be true or false", k.name)
	case shapePercent:
		if n, ok := decode[float64](raw); ok && n == math.Trunc(n) && n >= 0 && n <= 99 {
			return n + 0, nil // turns -0 into 0
		}
		return nil, fmt.Errorf("value of %s must be an integer from 0 to 99", k.name)
	case shapeNumber:
		if n, ok := decode[float64](raw); ok {
			return n + 0, nil
		}
		return nil, fmt.Errorf("value of %s must be a number", k.name)
	case shapeText:
		if s, ok := decode[string](raw); ok && s != "" {
			return s, nil
		}
		return nil, fmt.Errorf("value of %s must be a string that is not empty", k.name)
	case shapeColor:
		return parseColor(raw)
	case shapeAlarm:
		if a, ok := decode[alarmJSON](raw); ok {
			value := Alarm{Type: a.Type, Event: a.Event, Active: a.Active}
			if a.User != nil {
				value.User = *a.User
			}
			return value, nil
		}
		return nil, fmt.Errorf(
			"value of %s must be an object of type, event, active and user", k.name,
		)
	default:
		if s, ok := decode[Scene](raw); ok {
			return s, nil
		}
		return nil, fmt.Errorf("value of %s must be an object of scene and attribute", k.name)
	}
}

func parseColor(raw json.RawMessage) (any, error) {
	components, ok := decode[map[string]json.RawMessage](raw)
	if !ok {
		return nil, fmt.Errorf(
			"value of color must be an object of red, green, blue and optionally warm_white",
		)
	}
	c := Color{WarmWhite: unchanged}
	fields := map[string]*int{
		"red":        &c.Red,
		"green":      &c.Green,
		"blue":       &c.Blue,
		"warm_white": &c.WarmWhite,
	}
	for name := range components {
		if fields[name] == nil {
			return nil, fmt.Errorf(
				"color has no component %q: components are red, green, blue and warm_white", name,
			)
		}
	}
	for _, name := range []string{"red", "green", "blue", "warm_white"} {
		component, given := components[name]
		if !given && name == "warm_white" {
			continue
		}
		n, ok := decode[float64](component)
		if !ok || n != math.Trunc(n) || n < 0 || n > 255 {
			return nil, fmt.Errorf("%s of color must be an integer from 0 to 255", name)
		}
		*fields[name] = int(n)
	}
	return c, nil
}

// decode decodes raw as a T. It returns false for null: encoding/json would leave the zero value,
// and a command with null would act like one with false.
func decode[T any](raw json.RawMessage) (T, bool) {
	var value *T
	if len(raw) == 0 || json.Unmarshal(raw, &value) != nil || value == nil {
		var zero T
		return zero, false
	}
	return *value, true
}
