package devicestate

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"unicode"

	"hubcloud/domain"
)

// reported is the JSON of a reported value, and desired that of a desired one.
type (
	reported string
	desired  string
)

var _ domain.Desired = desired("")

// Matches reports whether a reported value is what was asked. Members that were not asked for, such
// as the warm_white of a color, may have any value.
func (d desired) Matches(value any) bool {
	text, ok := value.(reported)
	if !ok {
		return false
	}
	if string(d) == string(text) {
		return true
	}
	var want, got any
	if json.Unmarshal([]byte(d), &want) != nil || json.Unmarshal([]byte(text), &got) != nil {
		return false
	}
	members, isObject := want.(map[string]any)
	all, gotObject := got.(map[string]any)
	if !isObject || !gotObject {
		return reflect.DeepEqual(want, got)
	}
	for name, member := range members {
		if other, ok := all[name]; !ok || !reflect.DeepEqual(member, other) {
			return false
		}
	}
	return true
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
