package views

import (
	"testing"

	"github.com/nats-io/nats.go"
)

// Headers that are missing or malformed are errors, except for those of messages without a state.
func TestInvalidHeaders(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "soon", "1.5", "2026-01-02T03:04:05Z", "99999999999999999999",
	} {
		if got, err := Time(nats.Header{HeaderTime: {text}}); err == nil {
			t.Errorf("Time(%q): got %v, want an error", text, got)
		}
	}
	if got, err := Time(nats.Header{}); err == nil {
		t.Errorf("Time of a message without the header: got %v, want an error", got)
	}
	if got, _, err := State(nats.Header{HeaderState: {"no base64"}}); err == nil {
		t.Errorf("State of no base64: got %q, want an error", got)
	}
	if got, ok, err := State(nats.Header{}); err != nil || ok {
		t.Errorf("State of a message without the header: got %q, %v, %v, want none", got, ok, err)
	}
}
