package identity

import (
	"fmt"
	"net/netip"
	"testing"
	"time"
)

// TestRejectionsOfAnAddress: handshakes of an address wait while too many of its clients are rejected, but
// less than hubs wait for a connection, since a hub that is well may be among them; those of others do not.
func TestRejectionsOfAnAddress(t *testing.T) {
	t.Parallel()
	now := time.Now()
	r := NewRejections(nil, func() time.Time { return now })
	attacker, other := netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8:0:1::1")
	tooMany := 0
	for i := range 1000 {
		if r.add(fmt.Sprint(i), attacker.String()) {
			tooMany++
		}
	}
	if tooMany != 1000-addressBurst {
		t.Errorf("1000 rejections of different clients: got %d as too many, want all but %d", tooMany, addressBurst)
	}
	neighbour := attacker.Next()
	if got := r.Pause(neighbour); got < time.Second || got > 6*time.Second {
		t.Errorf("handshake of an address with rejections: got a pause of %v, want 1 to 6 s", got)
	}
	if got := r.Pause(other); got != 0 {
		t.Errorf("handshake of another address: got a pause of %v, want none", got)
	}
	if now = now.Add(11 * time.Second); r.Pause(neighbour) != 0 {
		t.Error("11 s after the last rejection: got a pause, want none")
	}
}
