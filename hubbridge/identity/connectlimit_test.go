package identity

import (
	"fmt"
	"testing"
	"time"

	"hubcloud/domain"
)

// A hub that connected and left without end wrote two events into its log each time. What is
// remembered for the limit is bounded too.
func TestConnectionsOfAHubAreLimited(t *testing.T) {
	t.Parallel()
	l, now := newConnectLimits(domain.HubLimit{PerMinute: 60, Burst: 5}), time.Now()
	granted := 0
	for range 1000 {
		if l.allow("hub-aaaa-aaaa-aaaa", now) {
			granted++
		}
	}
	if granted != 5 {
		t.Errorf("%d connections at once, want 5", granted)
	}
	if !l.allow("hub-bbbb-bbbb-bbbb", now) {
		t.Error("another hub is refused")
	}
	if !l.allow("hub-aaaa-aaaa-aaaa", now.Add(time.Second)) ||
		l.allow("hub-aaaa-aaaa-aaaa", now.Add(time.Second)) {
		t.Error("a second later there must be one more")
	}
	for n := range 10 * connectLimitsKept {
		if !l.allow(
			domain.HubID(fmt.Sprintf("hub-%04x-%04x-cccc", n>>16, n&0xffff)),
			now.Add(time.Duration(n)*10*time.Millisecond),
		) {
			t.Fatal("a hub that never connected is refused")
		}
	}
	if len(l.hubs) > 2*connectLimitsKept {
		t.Errorf("%d hubs are remembered", len(l.hubs))
	}
	var unlimited connectLimits
	if !unlimited.allow("hub-aaaa-aaaa-aaaa", now) {
		t.Error("the zero limit must allow everything")
	}
}
