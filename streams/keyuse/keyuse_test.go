package keyuse_test

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"hubcloud/streams"
	"hubcloud/streams/keyuse"
	"hubcloud/streams/streamstest"
	"hubcloud/streams/telemetry/telemetrytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, streamstest.Leaks()...) }

// TestLastUse is known at once where it was, and everywhere and for good once it is written.
func TestLastUse(t *testing.T) {
	t.Parallel()
	buckets, err := streams.OpenBuckets(t.Context(), streamstest.Start(t), 1)
	if err != nil {
		t.Fatal(err)
	}
	here, there := keyuse.New(buckets.KeyUse, nil, nil), keyuse.New(buckets.KeyUse, nil, nil)
	at := time.Date(2026, 1, 2, 3, 4, 50, 0, time.UTC)
	here.Used("one", at)
	here.Used("one", at.Add(-time.Hour)) // a request that took its time
	here.Used("two", at.Add(time.Hour))
	look := func(tracker *keyuse.Tracker) map[string]time.Time {
		t.Helper()
		used, err := tracker.LastUsed(t.Context(), []string{"one", "two", "never"})
		if err != nil {
			t.Fatal(err)
		}
		return used
	}
	want := at.Truncate(time.Minute)
	if got := look(here); len(got) != 2 || !got["one"].Equal(want) {
		t.Errorf("here %v", got)
	}
	if got := look(there); len(got) != 0 {
		t.Errorf("there, before it is written: %v", got)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := here.Run(ended); err != nil { // it writes at its end
		t.Error(err)
	}
	if got := look(there); len(got) != 2 || !got["one"].Equal(want) ||
		!got["two"].Equal(want.Add(time.Hour)) {
		t.Errorf("there %v", got)
	}
}

// TestFailureIsCounted: a bucket that takes nothing shows.
func TestFailureIsCounted(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	conns := broker.Connect(t)
	buckets, err := streams.OpenBuckets(t.Context(), conns, 1)
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewPedanticRegistry()
	tracker := keyuse.New(buckets.KeyUse, nil, registry)
	tracker.Used("one", time.Now())
	conns.Close()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := tracker.Run(ended); err != nil {
		t.Error(err)
	}
	if got := telemetrytest.Value(t, registry, "hubcloud_keyuse_write_failures_total"); got != 1 {
		t.Errorf("%v failures", got)
	}
}
