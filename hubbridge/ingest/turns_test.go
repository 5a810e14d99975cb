package ingest

import (
	"testing"

	"hubcloud/domain"
	"hubcloud/hubbridge/presence"
)

// ownedByPrefix is an Ownership in which a hub belongs to the organization that its id begins with.
type ownedByPrefix struct{}

func (ownedByPrefix) Hub(hub domain.HubID) (domain.HubAccess, bool) {
	return domain.HubAccess{OrgID: string(hub[:3])}, true
}

// Regression: hubs had their turn in the order in which they came, so a hub waited for one message of each
// of the thousand hubs of an organization that sent as much as they could.
func TestOrganizationsHaveTurns(t *testing.T) {
	t.Parallel()
	sh := NewShard(Config{Ownership: ownedByPrefix{}, Metrics: NewMetrics(nil)})
	for _, hub := range []domain.HubID{
		"all-aaaa-aaaa-aaa2", "all-aaaa-aaaa-aaa3", "all-aaaa-aaaa-aaa4", "one-aaaa-aaaa-aaa2", "all-aaaa-aaaa-aaa5",
	} {
		for range 2 {
			sh.Observe(hub, presence.Observation{})
		}
	}
	place := 0
	for n := 1; ; n++ {
		s, it, waits := sh.next()
		if !waits {
			if n != 11 || place > 2 {
				t.Errorf("got %d turns, the other organization's is number %d, want 10, and at most 2", n-1, place)
			}
			return
		}
		if s.hub[:3] == "one" && place == 0 {
			place = n
		}
		sh.finish(t.Context(), s, it, 0, nil)
	}
}
