package domain

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	// MaxIdempotencyKey is the most characters (code points) that an Idempotency-Key may have.
	MaxIdempotencyKey = 255
	// maxModeName is the most characters that the name of a mode may have: their list is open,
	// their length need not be.
	maxModeName = 200
)

// CheckIdempotencyKey takes an Idempotency-Key as the caller sent it; anything but 1 to
// MaxIdempotencyKey characters is an invalid_request. A byte that is no UTF-8 counts as a
// character.
func CheckIdempotencyKey(key string) error {
	if n := utf8.RuneCountInString(key); n < 1 || n > MaxIdempotencyKey {
		return Errorf(
			CodeInvalidRequest, "Idempotency-Key: must be 1 to %d characters, not %d",
			MaxIdempotencyKey, n,
		)
	}
	return nil
}

// CheckCommandValue takes the value of a command to a channel of that key, as JSON, and gives its
// canonical form: values that are the same once decoded have the same. The errors are not_found for
// a key that the contract does not have, and invalid_request for one that is read-only and for a
// value that it does not take. What a single channel takes beyond that (the bounds of a setpoint,
// the modes there are) is for its hub to say.
func CheckCommandValue(key string, value json.RawMessage) (canonical json.RawMessage, err error) {
	form, ok := channelKeys[key]
	switch {
	case !ok:
		return nil, Errorf(CodeNotFound, "no such channel")
	case form == readOnly:
		return nil, Errorf(
			CodeInvalidRequest, "key: must be one of %s; %s channels are read-only",
			writableKeys, key,
		)
	case len(value) == 0:
		return nil, Errorf(
			CodeInvalidRequest, "value: is required; for %s it must be %s", key, form.allowed(),
		)
	}
	if canonical, ok = form.take(value); !ok {
		return nil, Errorf(CodeInvalidRequest, "value: for %s it must be %s", key, form.allowed())
	}
	return canonical, nil
}

// writableKeys names the channel keys that commands are for, in the contract's order.
const writableKeys = "lock, barrier, switch, level, position, color, mode, heating_setpoint, " +
	"cooling_setpoint, fan_mode, local_protection"

// valueForm is what the values of commands to a channel look like.
type valueForm uint8

const (
	readOnly valueForm = iota
	flag
	percent
	degrees
	modeName
	color
)

// channelKeys are the channel keys of the contract.
var channelKeys = map[string]valueForm{
	"lock": flag, "barrier": flag, "switch": flag, "local_protection": flag,
	"level": percent, "position": percent,
	"color": color,
	"mode":  modeName, "fan_mode": modeName,
	"heating_setpoint": degrees, "cooling_setpoint": degrees,

	"operating_state": readOnly, "fan_state": readOnly,
	"temperature": readOnly, "humidity": readOnly, "luminance": readOnly, "co2": readOnly,
	"contact": readOnly, "motion": readOnly, "leak": readOnly, "smoke": readOnly, "co": readOnly,
	"heat": readOnly, "tamper": readOnly,
	"battery": readOnly,
	"energy":  readOnly, "power": readOnly, "voltage": readOnly, "current": readOnly,
	"water": readOnly, "gas": readOnly,
	"alarm": readOnly, "scene": readOnly,
}

// allowed says in words what the form takes.
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

// take gives the canonical form of a value.
func (f valueForm) take(value json.RawMessage) (json.RawMessage, bool) {
	// The parser passes over null, and null is no value.
	if value = bytes.Trim(value, " \t\r\n"); string(value) == "null" {
		return nil, false
	}
	switch f {
	case flag:
		var on bool
		return value, json.Unmarshal(value, &on) == nil
	case percent:
		return takeInteger(value, 99)
	case degrees:
		n, ok := takeNumber(value)
		return strconv.AppendFloat(nil, n, 'f', -1, 64), ok
	case modeName:
		return takeName(value)
	case color:
		return takeColor(value)
	default:
		return nil, false
	}
}

// takeNumber reads a number; one that is too large for a float64 is none.
func takeNumber(value json.RawMessage) (n float64, ok bool) {
	if json.Unmarshal(value, &n) != nil || string(value) == "null" {
		return 0, false
	}
	return n + 0, true // turns -0 into 0
}

// takeInteger reads an integer from 0 to most, however it is written: 1.0 and 1e0 are 1.
func takeInteger(value json.RawMessage, most int64) (json.RawMessage, bool) {
	n, ok := takeNumber(value)
	if !ok || n != math.Trunc(n) || n < 0 || n > float64(most) {
		return nil, false
	}
	return strconv.AppendInt(nil, int64(n), 10), true
}

func takeName(value json.RawMessage) (json.RawMessage, bool) {
	var name string
	if !utf8.Valid(value) || json.Unmarshal(value, &name) != nil || name == "" ||
		utf8.RuneCountInString(name) > maxModeName {
		return nil, false
	}
	// The parser makes U+FFFD of half an escaped surrogate pair, which is no character.
	if strings.ContainsFunc(name, unicode.IsControl) || strings.ContainsRune(name, utf8.RuneError) {
		return nil, false
	}
	canonical, err := json.Marshal(name)
	return canonical, err == nil
}

// takeColor reads a color, each of whose components may be there once.
func takeColor(value json.RawMessage) (json.RawMessage, bool) {
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
		if given[i], ok = takeInteger(component, 255); !ok {
			return nil, false
		}
	}
	if !json.Valid(value) ||
		slices.ContainsFunc(given[:3], func(n json.RawMessage) bool { return n == nil }) {
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

// CommandDone is a command that was sent to a hub, as the hub's log has it.
type CommandDone struct {
	// ID is the one under which the hub runs it once.
	ID       string
	OrgID    string
	HubID    HubID
	DeviceID int64
	Key      string
	Endpoint int64
	// Value is what was asked for, as JSON.
	Value json.RawMessage
	// At is when it was sent first, by the cloud's clock, and Actor who sent it.
	At    time.Time
	Actor Actor
	// Outcome is `accepted`, `canceled`, or the type of the error that the caller was answered
	// last, which Message then explains; empty while there is no answer.
	Outcome string
	Message string
}
