package portal

import (
	"slices"
	"testing"

	"hubcloud/domain"
)

// Hubs were in the order of their ids, which says nothing to people.
func TestHubOrder(t *testing.T) {
	t.Parallel()
	want := []hubState{
		{ID: "hub-3", Name: "Zoo", Status: domain.HubOffline},
		{ID: "hub-7", Name: "Annex", Status: domain.HubUnknown},
		{ID: "hub-6", Name: "gate 2", Status: domain.HubOnline},
		{ID: "hub-1", Name: "Gate 02b", Status: domain.HubOnline},
		{ID: "hub-5", Name: "Gate 10", Status: domain.HubOnline},
		{ID: "hub-2", Status: domain.HubOnline},
		{ID: "hub-10", Status: domain.HubOnline},
	}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, compareHubs)
	if !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
