package portal_test

import (
	"regexp"
	"testing"

	"hubcloud/streams/installationtest"
	"hubcloud/streams/streamstest"
)

var undoForm = regexp.MustCompile(`/undo">.*name="change" value="([^"]+)"`)

// The page after a change offers to undo it, once. A second press does no harm, and what somebody has
// changed since stays.
func TestUndo(t *testing.T) {
	t.Parallel()
	w := newBackend(t)
	b := w.open(t, nil).signIn(olga)
	changeOn := func(page string) string {
		t.Helper()
		found := undoForm.FindStringSubmatch(b.get(inOne+page, 200))
		if found == nil {
			t.Fatalf("%s offers no undo", page)
		}
		return found[1]
	}
	b.post(inOne+"/sites/"+site+"/name", 303, "name", "Typo")
	change := changeOn("/sites")
	if page := b.get(inOne+"/sites", 200); undoForm.MatchString(page) {
		t.Error("the second page offers the undo, too")
	}
	for range 2 {
		if to, _ := b.post(inOne+"/undo", 303, "change", change); to != inOne+"/sites" {
			t.Errorf("got a redirect to %s, want the page of the change", to)
		}
		page := b.get(inOne+"/sites", 200)
		checkPage(t, page)
		lacks(t, has(t, page, "Undone."), "Typo")
	}
	w.open(t, nil).signIn(max).post(inOne+"/undo", 403, "change", change)
	b.post(inOne+"/undo", 403, "change", "x")
	b.post("/portal/"+orgTwo+"/undo", 403, "change", change)

	b.post(inOne+"/settings/name", 303, "name", "Typo")
	change = changeOn("/settings")
	err := w.Backend.Directory.RenameOrg(
		t.Context(), installationtest.Operator, w.mill.ID, "Newer",
	)
	streamstest.Must(t, err)
	b.post(inOne+"/undo", 303, "change", change)
	has(t, b.get(inOne+"/settings", 200), "somebody has changed it", `value="Newer"`)
	b.post(inOne+"/settings/name", 400, "name", " ")
	if page := b.get(inOne+"/settings", 200); undoForm.MatchString(page) {
		t.Error("a rejected form offers an undo")
	}
}
