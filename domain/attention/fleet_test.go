package attention_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/domain/attention"
)

// fleet is an organization with the owner ann and many hubs at as many sites.
type fleet struct {
	*world
	hubs map[domain.HubID]attention.ObservedHub
}

func newFleet(hubs int) *fleet {
	f := &fleet{newWorld(), map[domain.HubID]attention.ObservedHub{}}
	f.org.Members = []domain.OrgMember{{ID: "ann", Role: domain.RoleOwner}}
	for i := range hubs {
		f.put(i, fmt.Sprint("site", i), domain.HubOnline)
	}
	return f
}

// put sets the state of a hub, with devices that report smoke.
func (f *fleet) put(i int, siteID string, status domain.HubStatus, smoke ...int64) {
	id := domain.HubID(fmt.Sprintf("hub-0000-0000-%04d", i))
	state := attention.HubState{ID: id, Status: status, Since: start}
	for _, device := range smoke {
		state.Devices = append(state.Devices, attention.DeviceState{
			ID: device, Available: true, Channels: []attention.ChannelState{{
				Key: "smoke", Value: []byte("true"), ObservedAt: f.at, ChangedAt: f.at,
			}},
		})
	}
	f.hubs[id] = attention.ObservedHub{
		State: state, Certain: true, Name: string(id), SiteID: siteID, Site: siteID,
	}
}

// pass observes every two seconds for a time.
func (f *fleet) pass(d time.Duration) {
	for end := f.at.Add(d); f.at.Before(end); f.at = f.at.Add(2 * time.Second) {
		for _, change := range f.record.Observe(f.at, f.hubs) {
			f.record.Apply(f.at, change, f.org, rules)
		}
		f.record.Decide(f.at, f.org, rules)
		f.queue()
	}
}

// An outage of 22 hubs used up the hour's mails, and smoke afterwards was mailed an hour later, in
// a digest.
func TestSmokeDoesNotWaitForWhatAnOutageHasUsed(t *testing.T) {
	t.Parallel()
	f := newFleet(22)
	for i := range 22 {
		f.put(i, fmt.Sprint("site", i), domain.HubOffline)
	}
	f.pass(10 * time.Minute)
	f.want(t, "the outage", append(
		slices.Repeat([]string{"ann begin hub_offline"}, 4), "ann digest 18")...)
	f.put(3, "site3", domain.HubOnline, 1)
	f.pass(2 * time.Second)
	f.want(t, "smoke", "ann begin smoke")
	f.crash(t)
	f.put(3, "site3", domain.HubOnline, 1, 2, 3)
	f.pass(50 * time.Second)
	f.want(t, "more smoke, within a minute of the first")
	f.pass(20 * time.Second)
	f.want(t, "more smoke", "ann begin smoke ×2")
	for i := range 10 {
		f.put(i, fmt.Sprint("site", i), domain.HubOnline, 1, 2, 3)
	}
	f.pass(2 * time.Second)
	f.want(
		t, "smoke at nine more sites: three mails are left, and one for all others",
		"ann begin smoke ×3", "ann begin smoke ×3", "ann begin smoke ×3", "ann digest 18",
	)
	f.put(15, "site15", domain.HubOnline, 1)
	f.pass(50 * time.Second)
	f.want(t, "smoke at another site, within a minute of the mail for all")
	f.pass(20 * time.Second)
	f.want(t, "smoke at another site", "ann begin smoke")
}

// Of many conditions of one kind at one site a member gets one mail, and another when they grow.
func TestOneMailForAKindAtASite(t *testing.T) {
	t.Parallel()
	f := newFleet(0)
	for i := range 300 {
		f.put(i, "tower", domain.HubOffline)
	}
	f.pass(6 * time.Minute)
	f.want(t, "300 hubs are offline", "ann begin hub_offline ×300")
	for i := 300; i < 305; i++ {
		f.put(i, "tower", domain.HubOnline, 1)
	}
	f.pass(2 * time.Second)
	f.want(t, "smoke", "ann begin smoke ×5")
	f.put(305, "tower", domain.HubOnline, 1)
	f.pass(2 * time.Minute)
	mails := f.last
	f.want(t, "more smoke", "ann begin smoke")
	if len(mails) != 1 || mails[0].Standing != 6 || !mails[0].Urgent {
		t.Errorf("got %+v, want an urgent mail with 6 that stand", mails)
	}
	for i := range 306 {
		f.put(i, "tower", domain.HubOnline)
	}
	f.pass(5 * time.Minute)
	f.want(t, "all is well", "ann end hub_offline ×300", "ann end smoke ×6")
	f.put(1, "tower", domain.HubOnline, 1)
	f.pass(20 * time.Second)
	f.put(1, "tower", domain.HubOnline)
	f.pass(14 * time.Second)
	f.want(t, "smoke that ends", "ann begin smoke", "ann end smoke")
	f.put(2, "tower", domain.HubOnline, 1)
	f.pass(2 * time.Second)
	f.want(t, "another cause within the minute", "ann begin smoke")
}
