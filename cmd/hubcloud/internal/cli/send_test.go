package cli

import (
	"testing"
	"time"
)

// A channel is understood as it is printed, with its endpoint.
func TestChannelWithEndpoint(t *testing.T) {
	t.Parallel()
	for channel, want := range map[string]struct {
		key      string
		endpoint int
		flag     int
		valid    bool
	}{
		"lock":     {"lock", 0, 0, true},
		"switch#2": {"switch", 2, 0, true},
		"level#3":  {"level", 3, 3, true},
		"level#4":  {"", 0, 3, false},
		"switch#":  {"", 0, 0, false},
		"switch#x": {"", 0, 0, false},
		"#1":       {"", 0, 0, false},
	} {
		c := sendCommand{Channel: channel, Endpoint: want.flag, Limit: time.Second}
		err := c.Validate()
		if (err == nil) != want.valid {
			t.Errorf("%s: got %v, want valid: %v", channel, err, want.valid)
		}
		if want.valid && (c.Channel != want.key || c.Endpoint != want.endpoint) {
			t.Errorf("%s: got %s, %d, want %s, %d", channel, c.Channel, c.Endpoint, want.key, want.endpoint)
		}
	}
}
