package domain

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxModeName is the most characters that the name of a mode may have. The list of modes is open.
const maxModeName = 200

// valueForm is the form of the values that a channel key allows in commands.
type valueForm uint8

const (
	readOnly valueForm = iota
	flag
	percent
	degrees
	modeName
	color
)

// channelKey is a channel key with the form of its values in commands.
type channelKey struct {
	key  string
	form valueForm
}

// channelKeys are the channel keys of the contract, the writable ones first, in its order. A new
// key also needs an entry in hubbridge/kit/virtualhub/keys.go, httpapi/portal/words.go
// (controls.go if the key is writable), httpapi/openapi.yaml and test/contract/devices_test.go.
var channelKeys = []channelKey{
	{"lock", flag}, {"barrier", flag}, {"switch", flag},
	{"level", percent}, {"position", percent},
	{"color", color},
	{"mode", modeName},
	{"heating_setpoint", degrees}, {"cooling_setpoint", degrees},
	{"fan_mode", modeName},
	{"local_protection", flag},

	{"operating_state", readOnly}, {"fan_state", readOnly},
	{"temperature", readOnly}, {"humidity", readOnly}, {"luminance", readOnly}, {"co2", readOnly},
	{"contact", readOnly}, {"motion", readOnly}, {"leak", readOnly}, {"smoke", readOnly},
	{"co", readOnly}, {"heat", readOnly}, {"tamper", readOnly},
	{"battery", readOnly},
	{"energy", readOnly}, {"power", readOnly}, {"voltage", readOnly}, {"current", readOnly},
	{"water", readOnly}, {"gas", readOnly},
	{"alarm", readOnly}, {"scene", readOnly},
}

// CheckCommandValue returns the canonical JSON of a command's value: equal values have equal JSON.
// Errors: not_found for a channel key that the contract does not have; invalid_request for a
// read-only key and for a value that the key does not allow. The limits of a single channel, such
// as the bounds of a setpoint or the modes it has, are checked by its hub.
func CheckCommandValue(key string, value json.RawMessage) (canonical json.RawMessage, err error) {
	i := slices.IndexFunc(channelKeys, func(known channelKey) bool { return known.key == key })
	if i < 0 {
		return nil, Errorf(CodeNotFound, "no such channel")
	}
	form := channelKeys[i].form
	switch {
	case form == readOnly:
		return nil, Errorf(
			CodeInvalidRequest, "key: must be one of %s; %s channels are read-only",
			writableKeys(), key,
		)
	case len(value) == 0:
		return nil, Errorf(
			CodeInvalidRequest, "value: is required; for %s it must be %s", key, form.allowed(),
		)
	}
	canonical, ok := form.canonical(value)
	if !ok {
		return nil, Errorf(CodeInvalidRequest, "value: for %s it must be %s", key, form.allowed())
	}
	return canonical, nil
}

// writableKeys lists the writable channel keys, for error messages.
func writableKeys() string {
	var keys []string
	for _, known := range channelKeys {
		if known.form != readOnly {
			keys = append(keys, known.key)
		}
	}
	return strings.Join(keys, ", ")
}

// allowed describes the allowed values, for error messages.
func (f valueForm) allowed() string {
	switch f {
	case flag:
		return "true or false"
	case percent:
		return "an integer from 0 to 99"
	case degrees:
		return "a number, in degrees C"
	case modeName:
		return "a string of 1 to 200 characters without control characters"
	case color:
		return "an object of red, green, blue and optionally warm_white, each an integer from 0 to 255"
	default:
		return "nothing"
	}
}

// canonical returns the canonical JSON of a value; false if the form does not allow it.
func (f valueForm) canonical(value json.RawMessage) (json.RawMessage, bool) {
	// json.Unmarshal accepts null for every type.
	if value = bytes.Trim(value, " \t\r\n"); string(value) == "null" {
		return nil, false
	}
	switch f {
	case flag:
		var on bool
		return value, json.Unmarshal(value, &on) == nil
	case percent:
		return canonicalInteger(value, 99)
	case degrees:
		n, ok := parseNumber(value)
		return strconv.AppendFloat(nil, n, 'f', -1, 64), ok
	case modeName:
		return canonicalName(value)
	case color:
		return canonicalColor(value)
	default:
		return nil, false
	}
}

// parseNumber returns a number; false for one that a float64 cannot hold.
func parseNumber(value json.RawMessage) (n float64, ok bool) {
	if json.Unmarshal(value, &n) != nil || string(value) == "null" {
		return 0, false
	}
	return n + 0, true // turns -0 into 0
}

// canonicalInteger returns an integer from 0 to limit, however it is written: 1.0 and 1e0 are 1.
func canonicalInteger(value json.RawMessage, limit int64) (json.RawMessage, bool) {
	n, ok := parseNumber(value)
	if !ok || n != math.Trunc(n) || n < 0 || n > float64(limit) {
		return nil, false
	}
	return strconv.AppendInt(nil, int64(n), 10), true
}

func canonicalName(value json.RawMessage) (json.RawMessage, bool) {
	var name string
	if !utf8.Valid(value) || json.Unmarshal(value, &name) != nil || name == "" ||
		utf8.RuneCountInString(name) > maxModeName {
		return nil, false
	}
	// json.Unmarshal replaces half of an escaped surrogate pair by U+FFFD.
	if strings.ContainsFunc(name, unicode.IsControl) || strings.ContainsRune(name, utf8.RuneError) {
		return nil, false
	}
	canonical, err := json.Marshal(name)
	return canonical, err == nil
}

// canonicalColor returns a color with its components in a fixed order, each at most once.
func canonicalColor(value json.RawMessage) (json.RawMessage, bool) {
	components := []string{"red", "green", "blue", "warm_white"}
	given := make([]json.RawMessage, len(components))
	decoder := json.NewDecoder(bytes.NewReader(value))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return nil, false
	}
	for decoder.More() {
		name, err := decoder.Token()
		i := slices.IndexFunc(components, func(component string) bool { return name == component })
		var component json.RawMessage
		if err != nil || i < 0 || given[i] != nil || decoder.Decode(&component) != nil {
			return nil, false
		}
		var ok bool
		if given[i], ok = canonicalInteger(component, 255); !ok {
			return nil, false
		}
	}
	if !json.Valid(value) || slices.ContainsFunc(given[:3], func(n json.RawMessage) bool { return n == nil }) {
		return nil, false
	}
	canonical := []byte{'{'}
	for i, n := range given {
		if n == nil {
			continue
		}
		if i > 0 {
			canonical = append(canonical, ',')
		}
		canonical = append(append(append(append(canonical, '"'), components[i]...), `":`...), n...)
	}
	return append(canonical, '}'), true
}
