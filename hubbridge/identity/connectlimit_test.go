package identity

import (
	"fmt"
	"testing"
	"time"

	"hubcloud/domain"
)

// TestConnectLimits: each hub may connect only so often. A hub that reconnected in a loop added two
// events to its log each time. The number of remembered hubs is limited too.
func TestConnectLimits(t *testing.T) {
	t.Parallel()
	l, now := newConnectLimits(domain.HubLimit{PerMinute: 60, Burst: 5}), time.Now()
	granted := 0
	for range 1000 {
		if l.allow("hub-aaaa-aaaa-aaaa", now) {
			granted++
		}
	}
	if granted != 5 {
		t.Errorf("connections at once: got %d, want 5", granted)
	}
	if !l.allow("hub-bbbb-bbbb-bbbb", now) {
		t.Error("another hub: got false, want true")
	}
	if !l.allow("hub-aaaa-aaaa-aaaa", now.Add(time.Second)) ||
		l.allow("hub-aaaa-aaaa-aaaa", now.Add(time.Second)) {
		t.Error("a second later: want exactly one more connection")
	}
	for n := range 10 * connectLimitsKept {
		if !l.allow(
			domain.HubID(fmt.Sprintf("hub-%04x-%04x-cccc", n>>16, n&0xffff)),
			now.Add(time.Duration(n)*10*time.Millisecond),
		) {
			t.Fatal("a new hub: got false, want true")
		}
	}
	if len(l.hubs) > 2*connectLimitsKept {
		t.Errorf("remembered hubs: got %d, want at most %d", len(l.hubs), 2*connectLimitsKept)
	}
	var unlimited connectLimits
	if !unlimited.allow("hub-aaaa-aaaa-aaaa", now) {
		t.Error("the zero value: got false, want true")
	}
}
