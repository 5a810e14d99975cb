package backup

import (
	"testing"

	"hubcloud/streams"
	"hubcloud/streams/installationtest"
)

// A restore began a new epoch for every hub that was ever added, and so failed with not_found at
// the first hub that was released since.
func TestRestoreOfAReleasedHub(t *testing.T) {
	t.Parallel()
	from := newTestInstallation(t, 2, 5)
	if _, err := from.Directory.ReleaseHub(
		t.Context(), installationtest.Operator, from.hubs[0],
	); err != nil {
		t.Fatal(err)
	}
	dir, _ := from.writeBackup(true)
	before := messages(t, from.Conns.Cloud, streams.DirectoryStream)
	to := restoreBackup(t, dir)
	if after := messages(t, to.Conns.Cloud, streams.DirectoryStream); len(after) != len(before)+1 {
		t.Errorf("events of the directory: got %d, want %d", len(after), len(before)+1)
	}
	for n, hub := range from.hubs {
		state, _, err := to.Directory.Hub(t.Context(), hub)
		if err != nil {
			t.Fatal(err)
		}
		released := n == 0
		if (state.OrgID == "") != released || (state.Released != nil) != released {
			t.Errorf("hub %d: got %+v, want released: %v", n, state, released)
		}
	}
}
