package presence_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"hubcloud/domain"
	"hubcloud/hubbridge/presence"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/streamstest"
	"hubcloud/streams/telemetry/telemetrytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, streamstest.Leaks()...) }

// TestView follows the bucket: what was there, what comes, and what comes after the broker has been
// away.
func TestView(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	conns := broker.Connect(t)
	buckets, err := streams.OpenBuckets(t.Context(), conns, 1)
	if err != nil {
		t.Fatal(err)
	}
	records := jsapi.NewBucket(conns.Cloud, presence.BucketName)
	put := func(hub domain.HubID, online bool, revision uint64) uint64 {
		t.Helper()
		revision, err := records.CompareAndSetJSON(
			t.Context(), string(hub), domain.Presence{HubID: hub, Online: online}, revision,
		)
		if err != nil {
			t.Fatal(err)
		}
		return revision
	}
	const a, b domain.HubID = "hub-aaaa-aaaa-aaaa", "hub-bbbb-bbbb-bbbb"
	revision := put(a, true, 0)
	registry := prometheus.NewPedanticRegistry()
	counts := func(hubs, online float64) bool {
		t.Helper()
		return telemetrytest.Value(t, registry, "hubcloud_presence_hubs") == hubs &&
			telemetrytest.Value(t, registry, "hubcloud_presence_hubs_online") == online
	}
	view := presence.NewView(conns.Cloud, buckets.Presence, slog.New(slog.DiscardHandler), registry)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- view.Run(ctx) }()
	<-view.Loaded()
	if !view.Online(a) || view.Online(b) {
		t.Error("loaded, and it does not hold what was there")
	}
	if _, known := view.Get(b); known {
		t.Error("a hub that never connected is known")
	}
	if !counts(1, 1) {
		t.Error("the metrics do not count the hub that was there")
	}
	put(b, true, 0)
	streamstest.Eventually(t, "both hubs are online", func() bool { return counts(2, 2) })
	revision = put(a, false, revision)
	streamstest.Eventually(t, "one hub is online", func() bool { return counts(2, 1) })
	streamstest.Eventually(
		t, "the other hub is online", func() bool { return !view.Online(a) && view.Online(b) },
	)
	if p, known, err := view.Fetch(t.Context(), a); err != nil || !known || p.Online {
		t.Errorf("%+v %v %v", p, known, err)
	}
	if _, known, err := view.Fetch(t.Context(), "hub-cccc-cccc-cccc"); err != nil || known {
		t.Errorf("%v %v", known, err)
	}

	broker.Stop()
	broker.Start(t)
	began := time.Now()
	for {
		if _, err := records.CompareAndSetJSON(t.Context(), string(a), domain.Presence{
			HubID: a, Online: true,
		}, revision); err == nil {
			break
		}
		if time.Since(began) > time.Minute {
			t.Fatal("the bucket does not come back")
		}
	}
	// also when it is told again what it knew
	streamstest.Eventually(
		t, "both hubs are online again", func() bool { return view.Online(a) && counts(2, 2) },
	)
	t.Logf("after the broker was away it took %v", time.Since(began))
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
