package domain_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"hubcloud/domain"
)

// FormatTime must return the same text as time.Format with TimeLayout.
func TestFormatTime(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		seconds := rapid.Int64Range(-1<<37, 1<<38).Draw(t, "seconds")
		nanoseconds := rapid.Int64Range(0, 1e9-1).Draw(t, "nanoseconds")
		at := time.Unix(seconds, nanoseconds).
			In(time.FixedZone("there", rapid.IntRange(-50000, 50000).Draw(t, "offset")))
		if got, want := domain.FormatTime(at), at.UTC().Format(domain.TimeLayout); got != want {
			t.Fatalf("FormatTime: got %s, want %s", got, want)
		}
	})
}
