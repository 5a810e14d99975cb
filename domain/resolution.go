package domain

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strconv"
)

// Resolution returns the step between the numbers that a channel can take, 0 if it is not known.
// The contract has whole numbers for some keys; of others the hub may tell it in the capabilities.
func Resolution(key string, capabilities json.RawMessage) float64 {
	if key == "level" || key == "position" {
		return 1
	}
	var has struct {
		Resolution json.RawMessage `json:"resolution"`
	}
	if !bytes.Contains(capabilities, []byte("resolution")) || json.Unmarshal(capabilities, &has) != nil {
		return 0
	}
	step, _ := JSONNumber(has.Resolution)
	return max(0, step)
}

// IsNearest reports whether two numbers differ by at most half the resolution: then a device that
// was asked for one of them and reports the other does what it can.
func IsNearest(asked, reported, resolution float64) bool {
	return math.Abs(asked-reported) <= resolution/2*(1+1e-9)
}

// JSONNumber returns a JSON value that is a number; false for another one.
func JSONNumber(value json.RawMessage) (float64, bool) {
	if len(value) == 0 || value[0] != '-' && (value[0] < '0' || value[0] > '9') {
		return 0, false
	}
	n, err := strconv.ParseFloat(string(value), 64)
	return n, err == nil
}

// SameValue reports whether a reported value is what a command asked for. Members of an object that
// the command does not have may have any value.
func SameValue(reported, wanted json.RawMessage) bool {
	var is, want any
	if json.Unmarshal(reported, &is) != nil || json.Unmarshal(wanted, &want) != nil {
		return false
	}
	members, ok := want.(map[string]any)
	of, both := is.(map[string]any)
	if !ok || !both {
		return reflect.DeepEqual(is, want)
	}
	for name, value := range members {
		if !reflect.DeepEqual(of[name], value) {
			return false
		}
	}
	return true
}
