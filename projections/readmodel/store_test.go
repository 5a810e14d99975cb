package readmodel_test

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/projections/projectionstest"
	"hubcloud/projections/readmodel"
	"hubcloud/streams"
)

func isCode(err error, code domain.Code) bool { return errors.Is(err, &domain.Error{Code: code}) }

func TestSitesAreListedInTheOrderOfTheirCreation(t *testing.T) {
	t.Parallel()
	w, s := projectionstest.NewProjected(t)
	// Unordered ids, all created in the same microsecond.
	at := time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC)
	var want []string
	for _, n := range []int{5, 2, 9, 1, 7} {
		w.AppendAt(
			t, at, streams.SiteSubject(org, siteID(n)),
			domain.SiteCreated{OrgID: org, SiteID: siteID(n), Name: fmt.Sprint(n)},
		)
		want = append(want, siteID(n))
	}
	projectionstest.Await(t, s, w.AddSite(t, other, 3))
	got := everyPage(t, 2, func(limit int, after string) (domain.Page[domain.Site], error) {
		return s.Sites(t.Context(), domain.Reach{OrgID: org}, limit, after)
	}, func(site domain.Site) string {
		if !site.CreatedAt.Equal(at) || site.CreatedAt.Location() != time.UTC {
			t.Errorf(
				"site %s: created at %s, want the time of the event in UTC", site.ID,
				site.CreatedAt,
			)
		}
		return site.ID
	})
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	// A page that ends with the last item has no more.
	if page, err := s.Sites(t.Context(), domain.Reach{OrgID: org}, 5, ""); err != nil || page.HasMore ||
		len(page.Data) != 5 {
		t.Errorf("full last page: got %v, %v, want five sites and no more", page, err)
	}
	if page, err := s.Sites(t.Context(), domain.Reach{OrgID: org}, 5, want[4]); err != nil || page.HasMore ||
		page.Data == nil ||
		len(page.Data) != 0 {
		t.Errorf("page after the last site: got %v, %v, want none", page, err)
	}
}

func TestHubsAreListedInTheOrderOfTheirIDs(t *testing.T) {
	t.Parallel()
	w, s := projectionstest.NewProjected(t)
	w.AddSite(t, org, 1)
	w.AddSite(t, org, 2)
	w.AddSite(t, other, 3)
	// By bytes, a dash comes before a digit and a digit before a letter. A locale may differ.
	ids := []domain.HubID{
		"hub-0000-0000-0000", "hub-0000-000a-0000", "hub-000a-0000-0000", "hub-a000-0000-0000",
		"huba-0000-0000-0000",
	}
	for i, n := range []int{3, 0, 4, 2, 1} {
		name := fmt.Sprint("Hub ", n)
		w.Append(
			t, streams.HubSubject(ids[n]),
			domain.HubAdded{
				HubID: ids[n], OrgID: org, SiteID: siteID(1 + i%2), Name: &name,
				EpochID: domain.NewEpochID(0x0),
			},
		)
	}
	projectionstest.Await(t, s, w.AddHub(t, other, 7, 3))
	list := func(site *string, limit int) []string {
		return everyPage(t, limit, func(limit int, after string) (domain.Page[domain.Hub], error) {
			return s.Hubs(t.Context(), domain.Reach{OrgID: org}, site, limit, after)
		}, func(hub domain.Hub) string {
			if hub.Status != domain.HubUnknown || !hub.Since.Equal(hub.AddedAt) || hub.Name == nil {
				t.Errorf("hub: got %+v, want one that is named and unknown since it was added", hub)
			}
			return string(hub.ID)
		})
	}
	for limit := 1; limit <= 6; limit++ {
		if got := list(nil, limit); fmt.Sprint(got) != fmt.Sprint(ids) {
			t.Errorf("pages of %d: got %v, want %v", limit, got, ids)
		}
	}
	first, second := siteID(1), siteID(2)
	want := []domain.HubID{ids[1], ids[3], ids[4]}
	if got := list(&first, 2); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("hubs at the first site: got %v, want %v", got, want)
	}
	// A hub that has moved to another site is a valid start.
	if page, err := s.Hubs(t.Context(), domain.Reach{OrgID: org}, &second, 50, string(ids[1])); err != nil ||
		len(page.Data) != 1 {
		t.Errorf("hubs after one of another site: got %v, %v, want one", page, err)
	}
}

func TestOtherOrganizationsAreNotFound(t *testing.T) {
	t.Parallel()
	w, s := projectionstest.NewProjected(t)
	w.AddSite(t, org, 1)
	projectionstest.Await(t, s, w.AddHub(t, org, 1, 1))
	if _, err := s.Site(t.Context(), org, siteID(1)); err != nil {
		t.Error(err)
	}
	if _, err := s.Hub(t.Context(), org, hubID(1)); err != nil {
		t.Error(err)
	}
	for _, theirs := range []string{
		siteID(1), siteID(2), "", "x", "\x00", "\xff",
	} {
		if _, err := s.Site(t.Context(), other, theirs); !isCode(err, domain.CodeNotFound) {
			t.Errorf("Site(%q) of another organization: got %v, want not_found", theirs, err)
		}
	}
	for _, theirs := range []domain.HubID{
		hubID(1), hubID(2), "", "\x00",
	} {
		if _, err := s.Hub(t.Context(), other, theirs); !isCode(err, domain.CodeNotFound) {
			t.Errorf("Hub(%q) of another organization: got %v, want not_found", theirs, err)
		}
	}
	theirs := domain.Reach{OrgID: other}
	if page, err := s.Sites(t.Context(), theirs, 50, ""); err != nil || len(page.Data) != 0 {
		t.Errorf("Sites of another organization: got %v, %v", page, err)
	}
	_, afterSite := s.Sites(t.Context(), theirs, 50, siteID(1))
	_, afterHub := s.Hubs(t.Context(), theirs, nil, 50, string(hubID(1)))
	for _, err := range []error{afterSite, afterHub} {
		if !isCode(err, domain.CodeInvalidRequest) {
			t.Errorf("starting_after of another organization: got %v, want invalid_request", err)
		}
	}
}

func TestConnection(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	before, after := at.Add(-time.Hour), at.Add(time.Hour)
	yes, no := true, false
	for name, c := range map[string]struct {
		connected bool
		online    *bool
		since     *time.Time
		status    domain.HubStatus
		at        time.Time
	}{
		"never heard of":                         {false, nil, nil, domain.HubUnknown, at},
		"connected when added, and not here yet": {true, nil, nil, domain.HubOnline, at},
		"connected before, and still":            {true, &yes, &before, domain.HubOnline, at},
		"connected since": {
			false, &yes, &after, domain.HubOnline, after,
		},
		"connected again since": {
			true, &yes, &after, domain.HubOnline, after,
		},
		"connected before and unseen by the add": {
			false, &yes, &before, domain.HubOnline, at,
		},
		"disconnected before it was added": {
			false, &no, &before, domain.HubUnknown, at,
		},
		"disconnected when it was added": {true, &no, &before, domain.HubOffline, at},
		"disconnected since": {
			true, &no, &after, domain.HubOffline, after,
		},
		"connected and disconnected since": {
			false, &no, &after, domain.HubOffline, after,
		},
		"disconnected in the microsecond in which it was added": {false, &no, &at, domain.HubOffline, at},
	} {
		if status, since := readmodel.Connection(
			at, c.connected, c.online, c.since,
		); status != c.status ||
			!since.Equal(c.at) {
			t.Errorf("%s: got %s since %s, want %s since %s", name, status, since, c.status, c.at)
		}
	}
}
