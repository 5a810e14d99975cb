package access_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/projections/access"
	"hubcloud/projections/projectionstest"
	"hubcloud/streams"
	"hubcloud/streams/streamstest"
)

// An organization's channel is closed when it gets, moves or loses a hub, and not by the changes of
// others.
func TestChanged(t *testing.T) {
	t.Parallel()
	w := projectionstest.New(t)
	a := w.RunIndex(t, nil)
	hub := projectionstest.HubID(1)
	for _, change := range []struct {
		name  string
		apply func() uint64
	}{
		{"added", func() uint64 { return w.AddHub(t, org, 1, 1) }},
		{"moved", func() uint64 {
			return w.Append(t, streams.HubSubject(hub), domain.HubMoved{
				HubID: hub, OrgID: org, SiteID: "another",
			})
		}},
		{"released", func() uint64 {
			return w.Append(t, streams.HubSubject(hub), domain.HubReleased{HubID: hub, OrgID: org})
		}},
	} {
		changed, again, other := a.Changed(org), a.Changed(org), a.Changed("other")
		projectionstest.Await(t, a, change.apply())
		for _, c := range []<-chan struct{}{changed, again} {
			select {
			case <-c:
			case <-time.After(time.Minute):
				t.Fatalf("%s: the channel of the organization is open, want it closed", change.name)
			}
		}
		select {
		case <-other:
			t.Errorf("%s: the channel of another organization is closed", change.name)
		case <-a.Changed(org):
			t.Errorf("%s: the next channel is closed before the next change", change.name)
		default:
		}
	}
}

// Hubs that were there before the Index was loaded are not reported as added; later ones are, and
// released ones.
func TestAddedAndReleased(t *testing.T) {
	t.Parallel()
	w := projectionstest.New(t)
	w.AddHub(t, org, 1, 1)
	a := access.New(access.Config{Directory: w.Directory, Logger: projectionstest.Logger(t)})
	var mu sync.Mutex
	var got []string
	report := func(what string) func(domain.HubID) {
		return func(hub domain.HubID) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, what+" "+string(hub))
		}
	}
	a.OnAdd(report("added"))
	a.OnRelease(report("released"))
	streamstest.Run(t, "access", a.Run)
	<-a.Loaded()
	hub := projectionstest.HubID(2)
	projectionstest.Await(t, a, w.AddHub(t, org, 2, 1))
	w.Do(t, a, streams.HubSubject(hub), domain.HubReleased{HubID: hub, OrgID: org})
	mu.Lock()
	defer mu.Unlock()
	if want := []string{"added " + string(hub), "released " + string(hub)}; !slices.Equal(got, want) {
		t.Errorf("reported: got %q, want %q", got, want)
	}
}
