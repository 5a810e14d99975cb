package check

import (
	"encoding/json"
	"fmt"
	"slices"
)

// form reports whether a JSON value has the form of a member or of a channel's value.
type form func(json.RawMessage) bool

// decodes returns the form of the values that decode into a T, but for null.
func decodes[T any](allowed func(T) bool) form {
	return func(raw json.RawMessage) bool {
		var v T
		return len(raw) > 0 && string(raw) != "null" && json.Unmarshal(raw, &v) == nil && (allowed == nil || allowed(v))
	}
}

func upTo(limit int64) form {
	return decodes(func(n int64) bool { return n >= 0 && n <= limit })
}

// oneOf is the form of the values that have one of some forms.
func oneOf(forms ...form) form {
	return func(raw json.RawMessage) bool {
		return slices.ContainsFunc(forms, func(f form) bool { return f(raw) })
	}
}

func isNull(raw json.RawMessage) bool    { return string(raw) == "null" }
func isAbsent(raw json.RawMessage) bool  { return len(raw) == 0 }
func isPresent(raw json.RawMessage) bool { return len(raw) > 0 }

var (
	isFlag    = decodes[bool](nil)
	isNumber  = decodes[float64](nil)
	isText    = decodes[string](nil)
	isInteger = upTo(1 << 53)
	isWord    = oneOf(isText, isInteger)
)

// members are the members of an object with their forms. Others are allowed.
type members map[string]form

// missing returns the name of a member that is absent or has another form; "" for none.
func (m members) missing(raw json.RawMessage) string {
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil {
		return "object"
	}
	for name, f := range m {
		if !f(object[name]) {
			return name
		}
	}
	return ""
}

func (m members) allows(raw json.RawMessage) bool { return m.missing(raw) == "" }

var (
	channelMembers = members{"key": isText, "endpoint": isInteger, "value": isPresent}
	nameMembers    = members{"name": isText}
	ruleMembers    = members{"name": isText, "enabled": isFlag}
)

// dataForms are the data of the types of events, as the protocol's page has them.
var dataForms = map[string]members{
	eventObserved:        channelMembers,
	eventDesired:         channelMembers,
	"channel.status":     {"key": isText, "endpoint": isInteger, "status": isText},
	"device.added":       {"name": isText, "secure": oneOf(isAbsent, isFlag)},
	"device.join_failed": {"reason": isText},
	"device.updated": {"name": isText, "removed_channels": decodes(func(all []json.RawMessage) bool {
		return !slices.ContainsFunc(all, func(one json.RawMessage) bool {
			return !members{"key": isText, "endpoint": isInteger}.allows(one)
		})
	})},
	"device.available":   {},
	"device.unavailable": {},
	"device.forgotten":   nameMembers,
	"credential.created": {"slot": isInteger, "label": isText},
	"credential.applied": {"state": isText},
	"credential.revoked": {},
	"rule.created":       ruleMembers,
	"rule.updated":       ruleMembers,
	"rule.fired":         {},
	"rule.deleted":       {},
}

// valueForm is the form of the values of some keys, with its name for messages.
type valueForm struct {
	form form
	text string
	keys []string
}

// valueForms are the forms of values, as the protocol's page has them.
var valueForms = []valueForm{
	{isFlag, "true or false", []string{
		"lock", "barrier", "switch", "local_protection", "contact", "motion", "leak", "smoke", "co",
		"heat", "tamper",
	}},
	{upTo(99), "an integer from 0 to 99", []string{"level", "position"}},
	{isNumber, "a number", []string{
		"heating_setpoint", "cooling_setpoint", "temperature", "humidity", "luminance", "co2",
		"battery", "energy", "power", "voltage", "current", "water", "gas",
	}},
	{isText, "a string", []string{"mode", "fan_mode", "operating_state", "fan_state"}},
	{
		members{
			"red": upTo(255), "green": upTo(255), "blue": upTo(255),
			"warm_white": oneOf(isAbsent, upTo(255)),
		}.allows,
		"an object of red, green, blue and warm_white, integers from 0 to 255", []string{"color"},
	},
	{
		members{
			"type": isWord, "event": isWord, "active": isFlag,
			"user": oneOf(isAbsent, isNull, isInteger),
		}.allows,
		"an object of type, event, active and user", []string{"alarm"},
	},
	{
		members{"scene": isInteger, "attribute": isText}.allows,
		"an object of scene, an integer, and attribute, a string", []string{"scene"},
	},
}

// checkValue returns what is wrong with the value of a channel, and whether its key is known. A
// value may be null.
func checkValue(key string, value json.RawMessage) (known bool, err error) {
	for _, f := range valueForms {
		if slices.Contains(f.keys, key) {
			if len(value) > 0 && !isNull(value) && !f.form(value) {
				err = fmt.Errorf("the value of %s is %s, want %s", key, value, f.text)
			}
			return true, err
		}
	}
	return false, nil
}

// judgeData checks the data of an event of a known type. The caller holds the mutex.
func (c *Check) judgeData(kind string, data json.RawMessage, seq uint64, payload []byte) {
	wanted, ok := dataForms[kind]
	if !ok {
		return
	}
	if name := wanted.missing(data); name != "" {
		c.fail("event-data", payload, "the data of event %d, %s, has no valid %s", seq, kind, name)
		return
	}
	c.pass("event-data")
	if kind != eventObserved {
		return
	}
	var channel channelData
	if json.Unmarshal(data, &channel) == nil {
		known, err := checkValue(channel.Key, channel.Value)
		c.judgeValue(known, err, fmt.Sprintf("event %d", seq), payload)
	}
}

// judgeValue decides about the value of a channel in a message. The caller holds the mutex.
func (c *Check) judgeValue(known bool, err error, where string, payload []byte) {
	switch {
	case err != nil:
		c.fail("channel-values", payload, "%s: %v", where, err)
	case known:
		c.pass("channel-values")
	}
}
