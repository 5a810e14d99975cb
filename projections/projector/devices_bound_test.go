package projector_test

import (
	"testing"

	"hubcloud/domain"
	"hubcloud/projections/projector"
	"hubcloud/streams/journal"
	"hubcloud/streams/streamstest"
)

// Hubs of one organization that reported ever new channels filled the database. Beyond a number the
// new ones are left out, also after a restart; the ones that are there, and other organizations', go
// on.
func TestChannelsOfAnOrganizationAreBounded(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.AddSite(t, other, 2)
	one, two := e.addHub(t, org, 1), e.addHub(t, org, 2)
	e.AddHub(t, other, 3, 2)
	const most = 10
	bounded := func(cfg *projector.Config) { cfg.OrgChannels = most }
	report := func(hub, from, to int, orgID string) {
		var records []journal.Record
		for device := from; device < to; device++ {
			r := observed(hub, int64(device), e.at, "power", "1")
			r.OrgID = orgID
			records = append(records, r)
		}
		e.commit(t, records...)
	}
	stop := e.project(t, bounded)
	report(1, 0, most-1, org)
	streamstest.Eventually(t, "the first channels", func() bool {
		return len(e.states(t, org, domain.StateFilter{})) == most-1
	})
	report(2, 0, 4, org)
	report(3, 0, most, other)
	e.commit(t, observed(1, 0, e.at, "power", "2"))
	omitted := func(hub domain.HubID) bool {
		found, err := e.store.Hub(t.Context(), org, hub)
		return err == nil && found.ChannelsOmitted
	}
	last := func() string {
		for _, s := range e.states(t, org, domain.StateFilter{HubID: &one}) {
			if s.DeviceID == 0 {
				return string(s.Channel.Value)
			}
		}
		return ""
	}
	streamstest.Eventually(t, "what is kept", func() bool {
		return len(e.states(t, other, domain.StateFilter{})) == most && omitted(two) && last() == "2"
	})
	stop()
	stop = e.project(t, bounded)
	report(1, 0, most, org)
	streamstest.Eventually(t, "a hub with a channel that is left out", func() bool { return omitted(one) })
	stop()
	if n := len(e.states(t, org, domain.StateFilter{})); n != most {
		t.Errorf("got %d channels of an organization that may have %d", n, most)
	}
}
