package consumer

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"hubcloud/httpapi/client"
	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// feedReader collects the cursors of a feed in a goroutine, by hub.
type feedReader struct {
	mu      sync.Mutex
	cursors map[string][]string
	// scenes are the numbers of the last scenes.
	scenes map[string]int
	gaps   []client.FeedGap
	err    error
	ended  chan struct{}
}

// reading starts to collect the events of a feed after a position, until ctx ends.
func reading(
	ctx context.Context, c *client.Client, filter client.FeedFilter, after string,
	options ...client.EventsOption,
) *feedReader {
	r := &feedReader{
		cursors: map[string][]string{}, scenes: map[string]int{}, ended: make(chan struct{}),
	}
	go func() {
		defer close(r.ended)
		for event, err := range c.Feed(ctx, filter, after, options...) {
			r.mu.Lock()
			gap, isGap := errors.AsType[*client.GapError](err)
			switch {
			case isGap && event.Type == client.EventFeedGap:
				r.gaps = append(r.gaps, gap.Feed)
			case err != nil && !isGap:
				r.err = err
			default:
				r.cursors[event.HubID] = append(r.cursors[event.HubID], event.Cursor)
				r.scenes[event.HubID] = max(r.scenes[event.HubID], sceneOf(event.Event))
			}
			r.mu.Unlock()
		}
	}()
	return r
}

// has reports whether the reader has had a scene of a hub.
func (r *feedReader) has(hub string, scene int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.scenes[hub] >= scene
}

// TestFollowingTheFeedOverRestarts follows the feed by stream, by long poll and in two parts, while
// the service is killed repeatedly and ends streams every few seconds. Readers get every event of
// each hub once, in the order of its log.
func TestFollowingTheFeedOverRestarts(t *testing.T) {
	t.Parallel()
	target := harness.NewTarget(t, "--stream-lifetime", "2s", "--stream-keepalive", "500ms")
	service := target.OwnService()
	tenant := target.Tenant("Feed")
	c := clientOf(t, tenant, client.Retry{MaxElapsed: time.Minute, MaxBackoff: time.Second})
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	var hubs []*virtualhub.Hub
	for range 4 {
		hubs = append(hubs, target.VirtualHub(tenant, virtualhub.Config{}))
	}
	emitScenes(t, hubs[0], 1, 5)
	harness.Stored(t, hubs[0])
	all, first, second := client.FeedFilter{}, client.FeedFilter{Part: 1, Parts: 2},
		client.FeedFilter{Part: 2, Parts: 2}
	readers := map[string][]*feedReader{
		"stream":    {reading(ctx, c, all, "")},
		"long-poll": {reading(ctx, c, all, "", client.LongPoll())},
		"parts":     {reading(ctx, c, first, ""), reading(ctx, c, second, "", client.LongPoll())},
	}
	const rounds, each = 2, 20
	for round := range rounds {
		for _, hub := range hubs {
			emitScenes(t, hub, round*each+6, round*each+each+5)
		}
		service.Kill()
		service.Begin()
		for _, hub := range hubs {
			harness.Connected(t, hub)
			harness.Stored(t, hub)
		}
	}
	for _, hub := range hubs {
		emitScenes(t, hub, 1000, 1000)
		harness.Stored(t, hub)
	}
	for name, parts := range readers {
		for _, hub := range hubs {
			streamstest.Eventually(t, name+" has the last scene", func() bool {
				return slices.ContainsFunc(parts, func(r *feedReader) bool {
					return r.has(hub.ID(), 1000)
				})
			})
		}
	}
	cancel()
	for name, parts := range readers {
		for _, r := range parts {
			if <-r.ended; !errors.Is(r.err, context.Canceled) || len(r.gaps) != 0 {
				t.Errorf("%s: got %v, gaps %v, want the end of the context", name, r.err, r.gaps)
			}
		}
		for _, hub := range hubs {
			var want, got []string
			for _, event := range tenant.AllEvents(hub.ID(), "") {
				want = append(want, event.Cursor)
			}
			had := 0
			for _, r := range parts {
				if cursors := r.cursors[hub.ID()]; len(cursors) > 0 {
					got, had = cursors, had+1
				}
			}
			// The cloud's own events, for example hub.connected, may follow the last scene.
			if had != 1 || len(got) > len(want) || !slices.Equal(got, want[:len(got)]) {
				t.Errorf(
					"%s: %d readers got %d events of %s\n%v\nwant one, %d events\n%v",
					name, had, len(got), hub.ID(), got, len(want), want,
				)
			}
		}
	}
}
