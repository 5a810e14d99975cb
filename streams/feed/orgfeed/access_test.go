package orgfeed

import (
	"context"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/streamstest"
)

// refreshes counts the refreshes of a directory.
type refreshes struct {
	Hubs
	count int
}

func (r *refreshes) Refresh(context.Context) error {
	r.count++
	return nil
}

func (r *refreshes) Hub(domain.HubID) (domain.HubAccess, bool) { return domain.HubAccess{}, false }

// After the wall clock had been set back, events of a hub that this process did not know yet were
// taken for another organization's until the clock had caught up: the last refresh seemed to be
// later than the events.
func TestRefreshAfterTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	hubs := &refreshes{}
	f := &Feed{cfg: Config{Hubs: hubs}}
	e := &entry{hub: "hub-aaaa-bbbb-cccc", received: time.Now()}
	for range 2 { // the second time, what was refreshed is recent enough
		if _, _, err := f.access(t.Context(), "org", e); err != nil {
			t.Fatal(err)
		}
	}
	// The wall clock of the next event is an hour behind that of the refresh.
	e.received = streamstest.BeforeSuspend(time.Hour)
	if _, _, err := f.access(t.Context(), "org", e); err != nil || hubs.count != 2 {
		t.Errorf("got %d refreshes, %v; want one for each event", hubs.count, err)
	}
}
