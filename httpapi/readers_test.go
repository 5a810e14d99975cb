package httpapi

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/streamstest"
)

// A page reports how many events follow it, also one that is written in parts, and when its position
// expires if that is soon.
func TestLagOfPages(t *testing.T) {
	t.Parallel()
	now := day
	s := start(t, func(c *Config) {
		c.Now = func() time.Time { return now }
		c.ResponseBytesPerKey = 80 << 10 // small parts
	})
	s.emit(60, 3000)
	for _, path := range []string{"/v1/hubs/" + string(hubOne) + "/events", "/v1/events"} {
		for _, tt := range []struct {
			query  string
			age    time.Duration
			behind string
			expire string
		}{
			{"limit=1", 0, "59", ""},
			{"limit=50", 0, "10", ""},
			{"limit=60", 0, "0", ""},
			{"limit=500", 0, "0", ""},
			{"limit=1&after=c57", 18 * time.Hour, "2", ""},
			{"limit=1&after=c57", 18*time.Hour + time.Second, "2", "21599"},
			{"limit=1&after=c57", 25 * time.Hour, "2", "0"},
			{"after=c57", 20 * time.Hour, "0", ""},
			{"after=c60&wait=1", 20 * time.Hour, "0", ""},
		} {
			now = day.Add(tt.age)
			a := s.do("GET", path+"?"+tt.query, "")
			if a.StatusCode != 200 || a.Header.Get("Events-Behind") != tt.behind ||
				a.Header.Get("Events-Expire-In") != tt.expire {
				t.Errorf(
					"GET %s?%s at %v: got %d, Events-Behind %q, Events-Expire-In %q, want %q, %q",
					path, tt.query, tt.age, a.StatusCode, a.Header.Get("Events-Behind"),
					a.Header.Get("Events-Expire-In"), tt.behind, tt.expire,
				)
			}
		}
	}
	if len(s.seen) != 0 {
		t.Errorf("of readers without a name %d reads were recorded, want none", len(s.seen))
	}
}

// What readers with a name were given is recorded: pages, pages in parts, and streams.
func TestReadersAreSeen(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *Config) { c.ResponseBytesPerKey = 80 << 10 })
	s.emit(60, 3000)
	const hubEvents = "/v1/hubs/" + string(hubOne) + "/events"
	last := func() string {
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.world.seen) == 0 {
			return ""
		}
		r := s.world.seen[len(s.world.seen)-1]
		return fmt.Sprintf("%s %s %d", r.FeedReaderID, r.Position, *r.Behind)
	}
	for request, want := range map[string]string{
		hubEvents + "?limit=2":           string(hubOne) + "/me c2 58",
		hubEvents + "?limit=55":          string(hubOne) + "/me c55 5",
		"/v1/events?limit=3":             "events/me c3 57",
		"/v1/events?limit=3&part=2/8":    "events:2-8/me c3 57",
		"/v1/events?after=c60&wait=1":    "events/me c60 0",
		"/v1/events?limit=500&after=c10": "events/me c60 0",
	} {
		if a := s.do("GET", request, "", "Reader", "me"); a.StatusCode != 200 {
			t.Errorf("GET %s: got %d, want 200", request, a.StatusCode)
		}
		// A page is recorded after it was sent.
		streamstest.Eventually(t, request+" is recorded as "+want, func() bool { return last() == want })
	}
	before := last()
	for _, refused := range []string{hubEvents + "?after=old", "/v1/events?limit=0"} {
		if s.do("GET", refused, "", "Reader", "other"); last() != before {
			t.Errorf("GET %s: recorded %q, want nothing of an error", refused, last())
		}
	}
	for path, id := range map[string]string{
		hubEvents + "/stream": string(hubOne) + "/s", "/v1/events/stream": "events/s",
	} {
		stream := s.streamAt(path, "Reader", "s", "Last-Event-ID", "c58")
		for range 3 {
			if _, err := stream.text.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		streamstest.Eventually(t, path+" is recorded", func() bool { return last() == id+" c60 0" })
		stream.stop()
	}
}

// A name that is not valid is an error that names the header, on every route with events.
func TestReaderNames(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	const hubEvents = "/v1/hubs/" + string(hubOne) + "/events"
	for _, path := range []string{hubEvents, hubEvents + "/stream", "/v1/events", "/v1/events/stream"} {
		for what, names := range map[string][]string{
			"empty": {""}, "65 characters": {strings.Repeat("x", 65)}, "two": {"a", "b"},
			"a tab": {"a\tb"}, "not UTF-8": {"a\xff"},
		} {
			headers := []string{}
			for _, name := range names {
				headers = append(headers, "Reader", name)
			}
			a := s.streamAt(path, headers...)
			body := make([]byte, 200)
			n, _ := io.ReadFull(a.text, body)
			if a.res.StatusCode != 400 || !strings.Contains(string(body[:n]), "Reader: must be ") {
				t.Errorf(
					"GET %s, Reader %s: got %d %s, want 400 that names Reader", path, what,
					a.res.StatusCode, body[:n],
				)
			}
		}
	}
	for _, name := range []string{"x", strings.Repeat("ü", 64), "Café 2/8: a~"} {
		if a := s.do("GET", hubEvents, "", "Reader", name); a.StatusCode != 200 {
			t.Errorf("Reader %s: got %d %s, want 200", strconv.Quote(name), a.StatusCode, a.body)
		}
		id := domain.FeedReaderID{Name: name, Hub: hubOne}
		for _, id := range []domain.FeedReaderID{id, {Name: name}, {Name: name, Part: "2/8"}} {
			if got, ok := domain.ParseFeedReaderID(id.String()); !ok || got != id {
				t.Errorf("ParseFeedReaderID(%q): got %+v, %v, want %+v", id.String(), got, ok, id)
			}
		}
	}
	for _, id := range []string{"events", "events/", "hub/x", "sites/x"} {
		a := s.do("GET", "/v1/readers?starting_after="+id, "")
		if a.StatusCode != 400 || !strings.Contains(a.body, "starting_after: must be an id") {
			t.Errorf("GET /v1/readers?starting_after=%s: got %d %s, want 400", id, a.StatusCode, a.body)
		}
	}
}
