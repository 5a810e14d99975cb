package directory_test

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/streams"
	"hubcloud/streams/directory"
	"hubcloud/streams/streamstest"
)

// TestKeyUse checks that a use is known at once in its process, and elsewhere once it is written,
// and that failed writes are counted.
func TestKeyUse(t *testing.T) {
	t.Parallel()
	conns, registry := streamstest.Start(t), prometheus.NewPedanticRegistry()
	buckets, err := streams.OpenBuckets(t.Context(), conns, 1)
	streamstest.Must(t, err)
	here, there := directory.NewKeyUse(buckets.KeyUse, nil, registry), directory.NewKeyUse(buckets.KeyUse, nil, nil)
	at := time.Date(2026, 1, 2, 3, 4, 50, 0, time.UTC)
	here.Used("one", at)
	here.Used("one", at.Add(-time.Hour)) // of a slow request
	here.Used("two", at.Add(time.Hour))
	lastUsed := func(tracker *directory.KeyUse) map[string]time.Time {
		t.Helper()
		used, err := tracker.LastUsed(t.Context(), []string{"one", "two", "never"})
		streamstest.Must(t, err)
		return used
	}
	want := at.Truncate(time.Minute)
	if got := lastUsed(here); len(got) != 2 || !got["one"].Equal(want) {
		t.Errorf("here: got %v, want two keys, one at %v", got, want)
	}
	if got := lastUsed(there); len(got) != 0 {
		t.Errorf("there, before the write: got %v, want none", got)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	streamstest.Must(t, here.Run(ended))
	if got := lastUsed(there); len(got) != 2 || !got["one"].Equal(want) ||
		!got["two"].Equal(want.Add(time.Hour)) {
		t.Errorf("there, after the write: got %v, want two keys", got)
	}
	here.Used("one", time.Now())
	conns.Close()
	streamstest.Must(t, here.Run(ended))
	if got := streamstest.MetricValue(t, registry, "hubcloud_keyuse_write_failures_total"); got != 1 {
		t.Errorf("got %v failures, want 1", got)
	}
}
