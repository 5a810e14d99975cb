package presence_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"hubcloud/domain"
	"hubcloud/hubbridge/presence"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/streamstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, streamstest.Leaks()...) }

// TestView: a view loads the bucket, follows its changes, and continues after the broker
// was away.
func TestView(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	conns := broker.Connect(t)
	buckets, err := streams.OpenBuckets(t.Context(), conns, 1)
	streamstest.Must(t, err)
	records := jsapi.NewBucket(conns.Cloud, presence.BucketName)
	put := func(hub domain.HubID, online bool, revision uint64) uint64 {
		t.Helper()
		revision, err := records.CompareAndSetJSON(
			t.Context(), string(hub), domain.Presence{HubID: hub, Online: online}, revision,
		)
		streamstest.Must(t, err)
		return revision
	}
	const a, b domain.HubID = "hub-aaaa-aaaa-aaaa", "hub-bbbb-bbbb-bbbb"
	revision := put(a, true, 0)
	registry := prometheus.NewPedanticRegistry()
	counts := func(hubs, online float64) bool {
		t.Helper()
		return streamstest.MetricValue(t, registry, "hubcloud_presence_hubs") == hubs &&
			streamstest.MetricValue(t, registry, "hubcloud_presence_hubs_online") == online
	}
	view := presence.NewView(conns.Cloud, buckets.Presence, slog.New(slog.DiscardHandler), registry)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- view.Run(ctx) }()
	<-view.Loaded()
	if !view.Online(a) || view.Online(b) {
		t.Errorf(
			"Online after the load: %t and %t, want true and false", view.Online(a), view.Online(b),
		)
	}
	if _, known := view.Get(b); known {
		t.Error("Get of a hub that never connected reports a presence")
	}
	if !counts(1, 1) {
		t.Error("the metrics do not count the loaded hub")
	}
	put(b, true, 0)
	streamstest.Eventually(t, "both hubs counted online", func() bool { return counts(2, 2) })
	revision = put(a, false, revision)
	streamstest.Eventually(t, "one hub online", func() bool {
		return counts(2, 1) && !view.Online(a) && view.Online(b)
	})
	if p, known, err := view.Fetch(t.Context(), a); err != nil || !known || p.Online {
		t.Errorf("Fetch = %+v, %t, %v, want an offline hub", p, known, err)
	}
	if _, known, err := view.Fetch(t.Context(), "hub-cccc-cccc-cccc"); err != nil || known {
		t.Errorf("Fetch of an unknown hub = %t, %v, want false", known, err)
	}

	broker.Stop()
	broker.Start(t)
	streamstest.Eventually(t, "the bucket is back", func() bool {
		_, err := records.CompareAndSetJSON(
			t.Context(), string(a), domain.Presence{HubID: a, Online: true}, revision,
		)
		return err == nil
	})
	// The view reads unchanged records again, and must not count them twice.
	streamstest.Eventually(t, "the view has the change", func() bool {
		return view.Online(a) && counts(2, 2)
	})
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Run = %v, want %v", err, context.Canceled)
	}
}
