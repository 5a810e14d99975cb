package devicestate

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"strings"
	"unicode"

	"hubcloud/domain"
)

// reported is the JSON of a reported value, and desired that of a desired one with the channel's
// resolution or 0.
type (
	reported string
	desired  struct {
		value      json.RawMessage
		resolution float64
	}
)

var _ domain.Desired = desired{}

// Matches reports whether a reported value is what was asked. A number is if it differs by at most
// half the resolution: it is the nearest one that the device can take. Members that were not asked
// for, such as the warm_white of a color, may have any value.
func (d desired) Matches(value any) bool {
	text, ok := value.(reported)
	if !ok {
		return false
	}
	got := json.RawMessage(text)
	if sameJSON(d.value, got) {
		return true
	}
	if x, isNumber := number(d.value); isNumber {
		y, isNumber := number(got)
		return isNumber && math.Abs(x-y) <= d.resolution/2*(1+1e-9)
	}
	var members, all map[string]any
	if json.Unmarshal(d.value, &members) != nil || json.Unmarshal(got, &all) != nil ||
		members == nil || all == nil {
		return false
	}
	for name, member := range members {
		if other, ok := all[name]; !ok || !reflect.DeepEqual(member, other) {
			return false
		}
	}
	return true
}

// resolution returns the step between the numbers that the channel can take, 0 if it is not known.
// The contract has whole numbers for some keys; of others the hub may tell it.
func (c *Channel) resolution() float64 {
	if c.Key == "level" || c.Key == "position" {
		return 1
	}
	var has struct {
		Resolution json.RawMessage `json:"resolution"`
	}
	if !bytes.Contains(c.Capabilities, []byte("resolution")) ||
		json.Unmarshal(c.Capabilities, &has) != nil {
		return 0
	}
	step, _ := number(has.Resolution)
	return max(0, step)
}

// areOtherNumbers reports whether two values are numbers that differ.
func areOtherNumbers(a, b json.RawMessage) bool {
	x, isNumber := number(a)
	y, isOther := number(b)
	return isNumber && isOther && x != y
}

// sameJSON reports whether two texts are the same JSON value.
func sameJSON(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	if x, isNumber := number(a); isNumber { // most values are numbers
		if y, isNumber := number(b); isNumber {
			return x == y
		}
	}
	var first, second any
	return json.Unmarshal(a, &first) == nil && json.Unmarshal(b, &second) == nil &&
		reflect.DeepEqual(first, second)
}

// number returns a JSON value that is a number; false for another one.
func number(value json.RawMessage) (float64, bool) {
	if len(value) == 0 || value[0] != '-' && (value[0] < '0' || value[0] > '9') {
		return 0, false
	}
	n, err := strconv.ParseFloat(string(value), 64)
	return n, err == nil
}

const (
	// maxKey is the most bytes of a channel key, and maxText the most of another text that is kept.
	maxKey  = 64
	maxText = 1024
)

// isKey reports whether a text can be a channel key.
func isKey(text string) bool {
	return text != "" && len(text) <= maxKey && strings.IndexFunc(text, func(r rune) bool {
		return !unicode.IsPrint(r)
	}) < 0
}

// cleanText returns a text of a hub in a form that can be stored anywhere: cut to maxText, and
// without zero bytes and bytes that are not UTF-8.
func cleanText(text string) string {
	text = text[:min(len(text), maxText)]
	return strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", "\uFFFD"), "\uFFFD")
}
