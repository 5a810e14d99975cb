package portal

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

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

// TestPastTimes: an entry said that something changed in a minute, since the clocks of a hub and of
// the service differ.
func TestPastTimes(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for text, shown := range map[string]string{
		"just now":      string(when(now.Add(time.Minute), now)),
		"2 minutes ago": string(when(now.Add(-2*time.Minute), now)),
		"in 2 minutes":  string(until(now.Add(2*time.Minute), now)),
	} {
		if !strings.Contains(shown, ">"+text+"<") {
			t.Errorf("got %s, want %s", shown, text)
		}
	}
}
