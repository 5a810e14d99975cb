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
	term := Term{holdFor: holdFor}
	want := func(when string, held, serving bool) {
		t.Helper()
		if term.Held() != held || term.Serving() != serving {
			t.Errorf("%s: held is %t and serving %t, want %t and %t", when, term.Held(),
				term.Serving(), held, serving)
		}
	}
	term.extend(time.Now())
	want("after a renewal", true, true)
	term.extend(streamstest.BeforeSuspend(holdFor + time.Second))
	want("after a suspension", false, false)
	term.try(time.Now())
	want("after a renewal without an answer", false, true)
	term.extend(time.Now())
	term.end()
	want("after the end", false, false)
}
