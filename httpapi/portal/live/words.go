package live

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"hubcloud/domain"
)

// Word is how a channel key is called, and what the two values of a boolean one mean.
type Word struct {
	Name  string `json:"name"`
	True  string `json:"true,omitempty"`
	False string `json:"false,omitempty"`
}

// Words are those of the contract's channel keys. Pages hand them on to their scripts, so that both
// say the same.
var Words = map[string]Word{
	"lock":             {"Lock", "locked", "unlocked"},
	"barrier":          {"Barrier", "open", "closed"},
	"switch":           {"Switch", "on", "off"},
	"level":            {Name: "Level"},
	"position":         {Name: "Position"},
	"color":            {Name: "Color"},
	"mode":             {Name: "Mode"},
	"heating_setpoint": {Name: "Heat to"},
	"cooling_setpoint": {Name: "Cool to"},
	"fan_mode":         {Name: "Fan mode"},
	"local_protection": {"Buttons on the device", "locked out", "working"},
	"operating_state":  {Name: "Operating state"},
	"fan_state":        {Name: "Fan"},
	"temperature":      {Name: "Temperature"},
	"humidity":         {Name: "Humidity"},
	"luminance":        {Name: "Light"},
	"co2":              {Name: "CO₂"},
	"contact":          {"Contact", "open", "closed"},
	"motion":           {"Motion", "seen", "not seen"},
	"leak":             {"Water leak", "found", "not found"},
	"smoke":            {"Smoke", "found", "not found"},
	"co":               {"Carbon monoxide", "alarm", "clear"},
	"heat":             {"Heat", "alarm", "normal"},
	"tamper":           {"Tampering", "tampered with", "untouched"},
	"battery":          {Name: "Battery"},
	"energy":           {Name: "Energy"},
	"power":            {Name: "Power"},
	"voltage":          {Name: "Voltage"},
	"current":          {Name: "Current"},
	"water":            {Name: "Water"},
	"gas":              {Name: "Gas"},
	"alarm":            {Name: "Alarm"},
	"scene":            {Name: "Scene"},
}

// nameOfKey gives a channel key as people call it; one that the contract does not have is written
// with spaces.
func nameOfKey(key string) string {
	if word, ok := Words[key]; ok {
		return word.Name
	}
	return strings.ReplaceAll(key, "_", " ")
}

// statusWords explain where a channel stands between what was asked of it and what it reports.
var statusWords = map[domain.ChannelStatus]string{
	domain.ChannelUnknown:      "Nothing reported yet",
	domain.ChannelSynchronized: "",
	domain.ChannelPending:      "Waiting for the device",
	domain.ChannelDiverged: "The device reports something else than was asked; it may be " +
		"jammed, or was changed by hand",
	domain.ChannelFailed: "The hub gave the command up; the device may be out of reach",
}

// text writes a channel's value for people; "–" for none.
func text(key string, unit string, value json.RawMessage) string {
	var v any
	if len(value) == 0 || json.Unmarshal(value, &v) != nil || v == nil {
		return "–"
	}
	switch v := v.(type) {
	case bool:
		word := Words[key]
		if word.True == "" {
			return strconv.FormatBool(v)
		}
		if v {
			return word.True
		}
		return word.False
	case float64:
		if unit = clip(unit, longestUnit); unit == "" {
			return numberText(v)
		}
		return numberText(v) + " " + unit
	case string:
		return clip(strings.ReplaceAll(v, "_", " "), longestValue)
	case map[string]any:
		if key == "color" {
			return colorText(v)
		}
		return clip(fieldsText(v), longestValue)
	}
	return clip(string(value), longestValue)
}

const (
	// longestValue and longestUnit are how many characters of what a hub says are shown.
	longestValue = 200
	longestUnit  = 16
	// largestNumber is the first that is written with an exponent.
	largestNumber = 1e15
)

// numberText writes a number with two decimals at most.
func numberText(n float64) string {
	if math.Abs(n) >= largestNumber {
		return strconv.FormatFloat(n, 'g', -1, 64)
	}
	return strconv.FormatFloat(math.Round(n*100)/100, 'f', -1, 64)
}

// clip leaves the beginning of a text that is longer than so many characters.
func clip(text string, longest int) string {
	n := 0
	for i := range text {
		if n == longest {
			return text[:i] + "…"
		}
		n++
	}
	return text
}

// Say writes a channel's value for people, with what the channel is called.
func Say(key string, value json.RawMessage) (name, said string) {
	return nameOfKey(key), text(key, "", value)
}

// fieldsText writes an object's fields one after the other, by their names.
func fieldsText(v map[string]any) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(v)) {
		switch field := v[name].(type) {
		case nil:
		case map[string]any, []any:
			nested, _ := json.Marshal(field) // what was decoded can be encoded
			parts = append(parts, name+" "+string(nested))
		default:
			parts = append(parts, strings.ReplaceAll(fmt.Sprint(name, " ", field), "_", " "))
		}
	}
	return strings.Join(parts, ", ")
}

// colorText writes a color as pages do, with its warm white when it has one.
func colorText(v map[string]any) string {
	written := hexColor(v)
	if white, ok := v["warm_white"].(float64); ok && white > 0 {
		written += ", warm white " + strconv.Itoa(int(white))
	}
	return written
}

// hexColor gives #rrggbb.
func hexColor(v map[string]any) string {
	const digits = "0123456789abcdef"
	written := []byte{'#'}
	for _, name := range []string{"red", "green", "blue"} {
		component, _ := v[name].(float64)
		n := uint8(max(0, min(255, component)))
		written = append(written, digits[n>>4], digits[n&15])
	}
	return string(written)
}
