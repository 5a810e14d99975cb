package views

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

func TestHeaderTime(t *testing.T) {
	t.Parallel()
	want := time.Date(2026, 1, 2, 3, 4, 5, 678901234, time.UTC)
	header := nats.Header{HeaderTime: {FormatTime(want)}}
	if got, err := Time(header); err != nil || got != want {
		t.Errorf("Time(%v): got %v, %v, want %v", header, got, err, want)
	}
	if got, err := Time(nats.Header{}); err == nil {
		t.Errorf("Time of a message without the header: got %v, want an error", got)
	}
	for _, text := range []string{
		"", "soon", "1.5", "2026-01-02T03:04:05Z", "99999999999999999999",
	} {
		header := nats.Header{HeaderTime: {text}}
		if got, err := Time(header); err == nil {
			t.Errorf("Time(%q): got %v, want an error", text, got)
		}
	}
}

func TestHeaderState(t *testing.T) {
	t.Parallel()
	for _, want := range []string{"", "a state", "\x00\xff\r\n"} {
		header := nats.Header{HeaderState: {FormatState([]byte(want))}}
		if got, ok, err := State(header); err != nil || !ok || string(got) != want {
			t.Errorf("State(%v): got %q, %v, %v, want %q", header, got, ok, err, want)
		}
	}
	if got, ok, err := State(nats.Header{}); err != nil || ok {
		t.Errorf("State of a message without the header: got %q, %v, %v, want none", got, ok, err)
	}
	if got, _, err := State(
		nats.Header{HeaderState: {"no base64"}},
	); err == nil {
		t.Errorf("State of no base64: got %q, want an error", got)
	}
}
