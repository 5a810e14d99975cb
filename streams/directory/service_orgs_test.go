package directory_test

import (
	"testing"

	"hubcloud/domain"
	"hubcloud/streams/streamstest"
)

// TestRemoveHub: the organization's hub can be added by another organization afterwards, and
// another organization's hub is not found.
func TestRemoveHub(t *testing.T) {
	t.Parallel()
	w := newWorld(t, streamstest.Start(t))
	w.register(t, hub)
	w.add(t)
	for _, org := range []string{w.orgB, "", "*"} {
		wantCode(t, w.RemoveHub(t.Context(), origin, org, hub), domain.CodeNotFound)
	}
	w.connections.Calls()
	if err := w.RemoveHub(t.Context(), origin, w.orgA, hub); err != nil {
		t.Fatal(err)
	}
	if calls := w.connections.Calls(); len(calls) != 1 || calls[0] != "disconnect "+string(hub) {
		t.Errorf("got calls %q, want one disconnect", calls)
	}
	wantCode(t, w.RemoveHub(t.Context(), origin, w.orgA, hub), domain.CodeNotFound)
	add := domain.AddHub{OrgID: w.orgB, HubID: hub, SiteID: w.sitesB[0]}
	if state, err := w.AddHub(t.Context(), origin, add); err != nil || state.OrgID != w.orgB {
		t.Errorf("add to another organization: got %+v, %v", state, err)
	}
	wantCode(t, w.RemoveHub(t.Context(), origin, w.orgA, hub), domain.CodeNotFound)
}

func TestRenameOrg(t *testing.T) {
	t.Parallel()
	w := newWorld(t, streamstest.Start(t))
	if err := w.RenameOrg(t.Context(), origin, w.orgA, "  Harbour "); err != nil {
		t.Fatal(err)
	}
	if org, err := w.Org(t.Context(), w.orgA); err != nil || org.Name != "Harbour" {
		t.Errorf("got %q, %v, want Harbour", org.Name, err)
	}
	wantCode(t, w.RenameOrg(t.Context(), origin, w.orgA, " "), domain.CodeInvalidRequest)
	wantCode(t, w.RenameOrg(t.Context(), origin, "*", "X"), domain.CodeNotFound)
}

// TestSeeConditionOfOwnHubs: nothing is recorded for another organization's hub.
func TestSeeConditionOfOwnHubs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, streamstest.Start(t))
	w.register(t, hub)
	w.add(t)
	smoke := []domain.Occurrence{{HubID: hub, Condition: "smoke/1/0", Since: origin.At}}
	wantCode(t, w.SeeConditions(t.Context(), origin, w.orgB, smoke, false), domain.CodeNotFound)
	if err := w.SeeConditions(t.Context(), origin, w.orgA, smoke, false); err != nil {
		t.Fatal(err)
	}
	org := w.org(t, w.orgA)
	if _, ok := org.SeenCondition(hub, "smoke/1/0", origin.At); !ok {
		t.Errorf("got %+v, want the condition seen", org.Seen)
	}
}
