package lease

import (
	"testing"
	"time"

	"hubcloud/streams/streamstest"
)

// A replica whose machine had been suspended took its leases for held when it woke up, although
// others had acquired them.
func TestTermOverASuspension(t *testing.T) {
	t.Parallel()
	const holdFor = 7 * time.Second
	term := term{holdFor: holdFor}
	term.extend(time.Now())
	if !term.held() {
		t.Error("held after a renewal: got false, want true")
	}
	term.extend(streamstest.BeforeSuspend(holdFor + time.Second))
	if term.held() {
		t.Error("held after a suspension: got true, want false")
	}
	term.extend(time.Now())
	term.end()
	if term.held() {
		t.Error("held after the end: got true, want false")
	}
}
