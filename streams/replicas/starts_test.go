package replicas

import (
	"testing"
	"time"
)

// TestServerStarted checks which answers of servers report a start: those of a server that was
// started at another time than before, earlier or later, and of one that did not answer at first.
func TestServerStarted(t *testing.T) {
	t.Parallel()
	began := time.Now()
	for name, test := range map[string]struct {
		server string
		at     time.Duration
		want   bool
	}{
		"the same start":            {"a", 0, false},
		"a later start":             {"a", time.Second, true},
		"a start with a slow clock": {"a", -time.Hour, true},
		"a server that was away":    {"b", 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &Reach{starts: map[string]time.Time{}, began: began}
			start := began.Add(-time.Hour)
			r.noteStart("a", start, began.Add(maxSilence/2))
			if at := r.ServerStarted(); !at.IsZero() {
				t.Fatalf("the first answer reports a start at %v", at)
			}
			now := began.Add(2 * maxSilence)
			r.noteStart(test.server, start.Add(test.at), now)
			if got := r.ServerStarted().Equal(now); got != test.want {
				t.Errorf("a start was found: %v, want %v", got, test.want)
			}
		})
	}
}

// TestRoutesChanged checks which answers report that servers have lost or found each other.
// Presence relies on it: a hub stayed offline because nothing told that its server was back.
func TestRoutesChanged(t *testing.T) {
	t.Parallel()
	r := &Reach{routes: map[string][]uint64{}}
	at := time.Now()
	for i, step := range []struct {
		what, server string
		routes       []uint64
		want         bool
	}{
		{"the first answer", "a", []uint64{7, 5}, false},
		{"the same in another order", "a", []uint64{5, 7}, false},
		{"the first answer of another server", "b", []uint64{5}, false},
		{"a route is lost", "a", []uint64{5}, true},
		{"nothing more is lost", "a", []uint64{5}, false},
		{"a route is back, with another id", "a", []uint64{5, 9}, true},
		{"all are lost", "b", nil, true},
	} {
		before, now := r.RoutesChanged(), at.Add(time.Duration(i)*time.Second)
		r.noteRoutes(step.server, step.routes, now)
		if got := !r.RoutesChanged().Equal(before); got != step.want {
			t.Errorf("%s: a change was found: %v, want %v", step.what, got, step.want)
		}
	}
}
