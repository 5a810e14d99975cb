package faults

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// TestFeedOfShortRetention reads a feed whose events are kept for seconds. Readers that keep
// reading get every event, or are told that they lack some by feed.gap or 410, also while the
// service is killed. A position that is older than the retention is rejected.
func TestFeedOfShortRetention(t *testing.T) {
	t.Parallel()
	const retention = 4 * time.Second
	s := harness.Start(
		t, "--event-retention", retention.String(), "--rate", "100000", "--burst", "100000",
	)
	f := newFeedTrial(t, s, 100*time.Millisecond)
	var page harness.Page
	f.tenant.Must(http.MethodGet, "/events", nil, http.StatusOK).JSON(t, &page)
	f.read("pages", "part=1/1", false)
	f.read("streams", "part=1/2", true)
	f.read("streams", "part=2/2", true)
	f.send()
	begun := time.Now()
	streamstest.Eventually(t, "the first position has expired", func() bool {
		answer, err := f.tenant.Client.Do(
			http.MethodGet, "/events?after="+url.QueryEscape(page.NextCursor), nil,
		)
		return err == nil && answer.Status == http.StatusGone
	})
	for kill := 1; kill <= 2; kill++ {
		streamstest.Eventually(t, "another retention has passed", func() bool {
			return time.Since(begun) > time.Duration(kill)*retention
		})
		s.Kill()
		s.Begin()
	}
	f.awaitProgress("at the end")
	// The hubs go on meanwhile: on a busy machine the last events may expire before they are read.
	for _, h := range f.hubs {
		stored := h.progress.Load()
		for set := range f.readers {
			streamstest.Eventually(t, set+" have new events of "+h.hub.ID, func() bool {
				return slices.ContainsFunc(f.gotBy(set, h.hub.ID), func(e harness.Event) bool {
					return e.Type == "channel.observed" && numberOf(t, e) > stored
				})
			})
		}
		h.end()
	}
	close(f.stop)
	f.reading.Wait()
	for set, readers := range f.readers {
		expired := 0
		for _, r := range readers {
			if expired += r.expired; len(r.wrong) > 0 {
				t.Errorf("%s, %s: got the answers %q, want none", set, r.query, r.wrong)
			}
		}
		for _, h := range f.hubs {
			checkNumbersOrGaps(t, set+" of "+h.hub.ID, f.gotBy(set, h.hub.ID))
		}
		t.Logf("%s: %d answers 410", set, expired)
	}
}

// checkNumbersOrGaps checks that events have the numbers of their hub without a gap, but where
// feed.gap tells of one.
func checkNumbersOrGaps(t *testing.T, who string, events []harness.Event) {
	t.Helper()
	var last uint64
	lacking := true // the oldest event of the first page need not be the first
	for _, e := range events {
		switch e.Type {
		case "feed.gap":
			lacking = true
		case "channel.observed":
			n := numberOf(t, e)
			if n != last+1 && !lacking {
				t.Errorf("%s: after event %d got %d, want the next number or feed.gap", who, last, n)
			}
			last, lacking = n, false
		}
	}
}

// numberOf returns the number that a hub gave the event as its value.
func numberOf(t *testing.T, e harness.Event) (n uint64) {
	t.Helper()
	harness.Must(t, json.Unmarshal(e.Observed().Value, &n))
	return n
}
