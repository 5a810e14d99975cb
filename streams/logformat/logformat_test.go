package logformat_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/streams/logformat"
)

func TestTime(t *testing.T) {
	t.Parallel()
	want := time.Date(2026, 1, 2, 3, 4, 5, 678901234, time.UTC)
	header := nats.Header{logformat.HeaderTime: {logformat.FormatTime(want)}}
	if got, ok, err := logformat.Time(header); err != nil || !ok || got != want {
		t.Errorf("Time(%v): got %v, %v, %v, want %v", header, got, ok, err, want)
	}
	if got, ok, err := logformat.Time(nats.Header{}); err != nil || ok {
		t.Errorf("Time of a message without the header: got %v, %v, %v, want none", got, ok, err)
	}
	for _, text := range []string{
		"", "soon", "1.5", "2026-01-02T03:04:05Z", "99999999999999999999",
	} {
		header := nats.Header{logformat.HeaderTime: {text}}
		if got, _, err := logformat.Time(header); err == nil {
			t.Errorf("Time(%q): got %v, want an error", text, got)
		}
	}
}
