package backup

import (
	"testing"

	"hubcloud/streams"
)

// A restore gave every hub that was ever added another epoch, and so ended with not_found at the
// first hub that was taken away from its organization since.
func TestRestoreOfAReleasedHub(t *testing.T) {
	t.Parallel()
	from := newInstallation(t, 2, 5)
	if _, err := from.service.ReleaseHub(t.Context(), origin, from.hubs[0]); err != nil {
		t.Fatal(err)
	}
	dir, _ := from.take(true)
	before := messages(t, from.conns.Cloud, streams.DirectoryStream)
	to := restored(t, dir)
	if after := messages(t, to.conns.Cloud, streams.DirectoryStream); len(after) != len(before)+1 {
		t.Errorf(
			"the directory had %d events and has %d now, want one more", len(before), len(after),
		)
	}
	for n, hub := range from.hubs {
		state, _, err := to.service.Hub(t.Context(), hub)
		if err != nil || (state.OrgID == "") != (n == 0) || (state.Released == nil) != (n != 0) {
			t.Errorf("hub %d is %+v, %v", n, state, err)
		}
	}
}
