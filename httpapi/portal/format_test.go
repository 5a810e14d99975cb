package portal

import (
	"encoding/json"
	"testing"

	"hubcloud/domain"
)

// TestNegativeZero: a meter that was just below zero, or reported -0, was shown as "-0 kWh".
func TestNegativeZero(t *testing.T) {
	t.Parallel()
	unit := "kWh"
	for value, want := range map[string]string{
		"-0": "0 kWh", "-0.0": "0 kWh", "-0.004": "0 kWh", "-1e-300": "0 kWh", "-0.01": "-0.01 kWh",
	} {
		c := domain.Channel{Key: "energy", Unit: &unit, Value: json.RawMessage(value)}
		if got := formatReported(c); got != want {
			t.Errorf("FormatReported(%s): got %q, want %q", value, got, want)
		}
	}
}
