package httpapi

import (
	"testing"
	"time"
)

// A page reports how many events follow it, also one that is written in parts, and when its
// position expires if that is soon.
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
