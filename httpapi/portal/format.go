package portal

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"hubcloud/domain"
)

// keyName returns the display name of a channel key. A key that the contract does not have is shown
// with spaces for underscores.
func keyName(key string) string {
	if word, ok := words[key]; ok {
		return word.Name
	}
	return strings.ReplaceAll(key, "_", " ")
}

// formatValue returns a channel's value for display, with its unit, and "–" for no value.
func formatValue(key, unit string, value json.RawMessage) string {
	var v any
	if len(value) == 0 || json.Unmarshal(value, &v) != nil || v == nil {
		return "–"
	}
	switch v := v.(type) {
	case bool:
		word := words[key]
		if word.True == "" {
			return strconv.FormatBool(v)
		}
		if v {
			return word.True
		}
		return word.False
	case float64:
		if isPercent(key) {
			return formatNumber(shownPercent(v)) + " %"
		}
		if unit = truncate(unit, longestUnit); unit == "" {
			return formatNumber(v)
		}
		return formatNumber(v) + " " + unit
	case string:
		return truncate(strings.ReplaceAll(v, "_", " "), longestValue)
	case map[string]any:
		switch key {
		case "color":
			return formatColor(v)
		case "scene":
			if scene := formatScene(v); scene != "" {
				return truncate(scene, longestValue)
			}
		case "alarm":
			if alarm := formatAlarm(v); alarm != "" {
				return truncate(alarm, longestValue)
			}
		}
		return truncate(formatFields(v), longestValue)
	}
	return truncate(string(value), longestValue)
}

// isPercent reports whether a channel has percent that end at 99, which pages show as 100.
func isPercent(key string) bool { return key == "level" || key == "position" }

// shownPercent returns the percent that pages show for the value of a channel of isPercent.
func shownPercent(value float64) float64 {
	if value == 99 {
		return 100
	}
	return value
}

const (
	// longestValue and longestUnit bound the texts of hubs, in characters.
	longestValue = 200
	longestUnit  = 16
	// largestNumber and larger numbers are shown with an exponent.
	largestNumber = 1e15
)

// formatNumber returns a number with at most two decimals.
func formatNumber(n float64) string {
	if math.Abs(n) >= largestNumber {
		return strconv.FormatFloat(n, 'g', -1, 64)
	}
	rounded := math.Round(n*100)/100 + 0 // turns -0 into 0
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}

// truncate returns the first longest characters of a text, with an ellipsis if more follow.
func truncate(text string, longest int) string {
	n := 0
	for i := range text {
		if n == longest {
			return text[:i] + "…"
		}
		n++
	}
	return text
}

// describeValue returns the display name of a channel key and of a value of such a channel.
func describeValue(key string, value json.RawMessage) (name, text string) {
	return keyName(key), formatValue(key, "", value)
}

// formatFields returns the names and values of an object's fields, in the order of the names.
func formatFields(v map[string]any) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(v)) {
		switch field := v[name].(type) {
		case nil:
		case map[string]any, []any:
			nested, _ := json.Marshal(field) // a decoded value always marshals
			parts = append(parts, name+" "+string(nested))
		default:
			parts = append(parts, strings.ReplaceAll(fmt.Sprint(name, " ", field), "_", " "))
		}
	}
	return strings.Join(parts, ", ")
}

// formatScene returns a scene for display, such as "Scene 4 (pressed)", and "" for a value that
// names no scene.
func formatScene(v map[string]any) string {
	scene, ok := v["scene"].(float64)
	if !ok {
		return ""
	}
	pattern, attribute := scriptTexts["scene"], ""
	if v, ok := v["attribute"].(string); ok && v != "" {
		pattern, attribute = scriptTexts["scene attribute"], strings.ReplaceAll(v, "_", " ")
	}
	return fill(
		pattern, "scene", strconv.FormatFloat(scene, 'f', -1, 64), "attribute", attribute,
	)
}

// formatAlarm returns an alarm for display, such as "Code accepted (code 2)", and "" for a value
// that names neither an event nor a type.
func formatAlarm(v map[string]any) string {
	event, _ := v["event"].(string)
	kind, _ := v["type"].(string)
	alarm, ok := scriptTexts["alarm "+event]
	if !ok {
		if kind == event {
			kind = ""
		}
		alarm = strings.ReplaceAll(strings.Join(nonEmpty(kind, event), ": "), "_", " ")
		if alarm == "" {
			return ""
		}
		first, size := utf8.DecodeRuneInString(alarm)
		alarm = string(unicode.ToUpper(first)) + alarm[size:]
	}
	if user, ok := v["user"].(float64); ok {
		alarm = fill(
			scriptTexts["alarm user"], "alarm", alarm, "user", strconv.FormatFloat(user, 'f', -1, 64),
		)
	}
	if active, ok := v["active"].(bool); ok && !active {
		alarm = fill(scriptTexts["alarm ended"], "alarm", alarm)
	}
	return alarm
}

// formatReported returns the display text of the value that a channel reported.
func formatReported(c domain.Channel) string {
	unit := ""
	if c.Unit != nil {
		unit = *c.Unit
	}
	return formatValue(c.Key, unit, c.Value)
}

// alarmText returns the display text of the event of an alarm channel.
func alarmText(event string) string {
	return truncate(formatAlarm(map[string]any{"event": event}), longestValue)
}

// formatColor returns a color as #rrggbb, with its warm white if it has one.
func formatColor(v map[string]any) string {
	color := hexColor(v)
	if white, ok := v["warm_white"].(float64); ok && white > 0 {
		return fill(scriptTexts["warm-white"], "color", color, "white", strconv.Itoa(int(white)))
	}
	return color
}

// hexColor returns a color as #rrggbb.
func hexColor(v map[string]any) string {
	const digits = "0123456789abcdef"
	hex := []byte{'#'}
	for _, name := range []string{"red", "green", "blue"} {
		component, _ := v[name].(float64)
		n := uint8(max(0, min(255, component)))
		hex = append(hex, digits[n>>4], digits[n&15])
	}
	return string(hex)
}
