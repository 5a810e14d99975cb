package contract

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// hasExactly checks that an object has exactly the named fields.
func hasExactly(t *testing.T, what string, object map[string]any, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, ok := object[name]; !ok {
			t.Errorf("%s: want field %s, got %v", what, name, object)
		}
	}
	for name := range object {
		if !slices.Contains(names, name) {
			t.Errorf("%s: got field %s, which is not in the contract: %v", what, name, object)
		}
	}
}

// isTimestamp tests "Timestamps are ISO 8601 UTC strings."
func isTimestamp(t *testing.T, what string, value any) {
	t.Helper()
	text, _ := value.(string)
	if _, err := time.Parse(time.RFC3339Nano, text); err != nil || !strings.HasSuffix(text, "Z") {
		t.Errorf("%s: got %v, want an ISO 8601 timestamp in UTC", what, value)
	}
}

var microseconds = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$`)

// isMicroTimestamp tests "timestamp with microseconds".
func isMicroTimestamp(t *testing.T, what string, value any) {
	t.Helper()
	if text, _ := value.(string); !microseconds.MatchString(text) {
		t.Errorf("%s: got %v, want a timestamp with microseconds", what, value)
	}
}

// sameJSON reports whether two JSON texts have the same value.
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

// data returns the objects of a list answer.
func data(t *testing.T, list map[string]any) []map[string]any {
	t.Helper()
	all, ok := list["data"].([]any)
	if !ok {
		t.Fatalf("got %v, want a list", list)
	}
	objects := make([]map[string]any, len(all))
	for i, item := range all {
		objects[i], _ = item.(map[string]any)
	}
	return objects
}
