package domain_test

import (
	"testing"
	"time"

	"hubcloud/domain"
)

func TestFormatDuration(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0 seconds", time.Second: "1 second", 10 * time.Second: "10 seconds",
		90 * time.Second: "90 seconds", time.Minute: "1 minute", 90 * time.Minute: "90 minutes",
		time.Hour: "1 hour", 24 * time.Hour: "24 hours", 36 * time.Hour: "36 hours",
		7 * 24 * time.Hour: "7 days", 1500 * time.Millisecond: "1.5s",
	} {
		if got := domain.FormatDuration(d); got != want {
			t.Errorf("FormatDuration(%d ns) = %q, want %q", d, got, want)
		}
	}
}
