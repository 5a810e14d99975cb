package devicestate

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"unicode"

	"hubcloud/domain"
)

// reported is the JSON of a reported value, and desired of a desired one, with the channel's
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
	if x, isNumber := domain.JSONNumber(d.value); isNumber {
		y, isNumber := domain.JSONNumber(got)
		return isNumber && domain.IsNearest(x, y, d.resolution)
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

// areOtherNumbers reports whether two values are numbers that differ.
func areOtherNumbers(a, b json.RawMessage) bool {
	x, isNumber := domain.JSONNumber(a)
	y, isOther := domain.JSONNumber(b)
	return isNumber && isOther && x != y
}

// sameJSON reports whether two texts are the same JSON value.
func sameJSON(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	if x, isNumber := domain.JSONNumber(a); isNumber { // most values are numbers
		if y, isNumber := domain.JSONNumber(b); isNumber {
			return x == y
		}
	}
	var first, second any
	return json.Unmarshal(a, &first) == nil && json.Unmarshal(b, &second) == nil &&
		reflect.DeepEqual(first, second)
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
