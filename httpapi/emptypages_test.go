package httpapi

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/shares"
)

// endlessFeed has events on end, of which the filter selects one in a quarter of what a page
// searches.
type endlessFeed struct {
	OrgEvents
	parts atomic.Int64
}

func (f *endlessFeed) Part(
	context.Context, domain.Reach, domain.EventFilter, string, int, int, time.Duration,
) (domain.EventPage, error) {
	f.parts.Add(1)
	return domain.EventPage{
		Events: []domain.EncodedEvent{{Envelope: []byte("{}")}}, Next: "c7", HasMore: true,
		Scanned: maxSearched/4 + 1,
	}, nil
}

// A request whose filter selects next to nothing read the organization's events to their end, for
// seconds of CPU. Now its page ends early, and the client goes on within its rate.
func TestFilterThatSelectsLittle(t *testing.T) {
	t.Parallel()
	events := &endlessFeed{}
	s := start(t, func(c *Config) { c.OrgEvents = events })
	a := s.do("GET", "/v1/events?type=nomatch.*", "")
	if want := `"next_cursor":"c7","has_more":true`; a.StatusCode != 200 ||
		!strings.Contains(a.body, want) {
		t.Errorf("got %d %s, want 200 with %s", a.StatusCode, a.body, want)
	}
	if n := events.parts.Load(); n != 4 {
		t.Errorf("got %d parts searched, want 4", n)
	}
}

// Regression: searches of one organization took two processors from everyone else, on a machine that has
// two. Now they take half of what streams may take, together with them.
func TestSearchesLeaveTimeToOthers(t *testing.T) {
	t.Parallel()
	inBubble(t, func(c *Config) {
		c.OrgEvents, c.StreamTime = &endlessFeed{}, time.Second
		c.Shares = new(shares.Registry)
	}, func(s *service, _ *pipeListener) {
		search := func() time.Duration {
			begun := time.Now()
			s.do("GET", "/v1/events?type=nomatch.*", "")
			return time.Since(begun)
		}
		if took := search(); took != 0 {
			t.Errorf("alone: waited for %v, want no wait", took)
		}
		other, _ := s.addKey(orgTwo, 2, domain.AllScopes()...)
		s.do("GET", "/v1/hubs", "", "Authorization", other)
		if took, want := search().Round(time.Millisecond), 2*maxSearched*searchTime-streamsAhead; took != want {
			t.Errorf("beside others: waited for %v, want %v", took, want)
		}
	})
}
