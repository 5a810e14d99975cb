package contract

import (
	"encoding/json"
	"testing"
)

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
