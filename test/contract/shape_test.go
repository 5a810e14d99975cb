package contract

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// hasExactly holds an object to its fields: those, and no others.
func hasExactly(t *testing.T, what string, object map[string]any, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, ok := object[name]; !ok {
			t.Errorf("%s has no %s: %v", what, name, object)
		}
	}
	for name := range object {
		if !slices.Contains(names, name) {
			t.Errorf("%s has %s, which the contract does not list: %v", what, name, object)
		}
	}
}

// isTimestamp: "Timestamps are ISO 8601 UTC strings."
func isTimestamp(t *testing.T, what string, value any) {
	t.Helper()
	text, _ := value.(string)
	if _, err := time.Parse(time.RFC3339Nano, text); err != nil || !strings.HasSuffix(text, "Z") {
		t.Errorf("%s is %v, and should be an ISO 8601 timestamp in UTC", what, value)
	}
}

var microseconds = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$`)

// isMicroTimestamp: "timestamp with microseconds".
func isMicroTimestamp(t *testing.T, what string, value any) {
	t.Helper()
	if text, _ := value.(string); !microseconds.MatchString(text) {
		t.Errorf("%s is %v, and should be a timestamp with microseconds", what, value)
	}
}

// sameJSON compares two JSON texts by what they say.
func sameJSON(a, b []byte) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	one, err := json.Marshal(x)
	if err != nil {
		return false
	}
	other, err := json.Marshal(y)
	return err == nil && string(one) == string(other)
}

// data gives the objects of a list answer.
func data(t *testing.T, list map[string]any) []map[string]any {
	t.Helper()
	all, ok := list["data"].([]any)
	if !ok {
		t.Fatalf("no data: %v", list)
	}
	objects := make([]map[string]any, len(all))
	for i, item := range all {
		objects[i], _ = item.(map[string]any)
	}
	return objects
}
