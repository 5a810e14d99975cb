package upgrade

import (
	"strings"
	"testing"
	"time"

	"hubcloud/streams"
	"hubcloud/streams/jsapi"
	"hubcloud/test/harness"
)

// rejectNewer checks that a replica recorded the format on its broker, and that it does not start
// again once a later program has recorded a newer one. flags name the broker.
func rejectNewer(t *testing.T, replica *harness.Service, flags []string) {
	t.Helper()
	replica.Stop()
	access, err := streams.ReadCredentials(flags[3])
	harness.Must(t, err)
	access.URL = flags[1]
	conns, err := streams.Connect(t.Context(), access)
	harness.Must(t, err)
	defer conns.Close()
	type record struct {
		Format  int    `json:"format"`
		Version string `json:"version"`
	}
	bucket := jsapi.NewBucket(conns.Cloud, streams.InstallationBucket)
	var first record
	entry, err := bucket.GetJSON(t.Context(), "format", &first)
	if err != nil || first.Format < 1 || first.Version == "" {
		t.Fatalf("the first start recorded %+v, %v, want its format and version", first, err)
	}
	newer := record{Format: 1000, Version: "99.1.0"}
	if _, err := bucket.CompareAndSetJSON(t.Context(), "format", newer, entry.Revision); err != nil {
		t.Fatal(err)
	}

	replica.Launch()
	select {
	case <-replica.Ended():
	case <-time.After(time.Minute):
		t.Fatalf("still running:\n%s", replica.Log())
	}
	if log := replica.Log(); replica.ExitCode() != 1 ||
		!strings.Contains(log, "written by hubcloud 99.1.0, format 1000; this binary") {
		t.Errorf("got exit code %d, want 1 and the version:\n%s", replica.ExitCode(), log)
	}
	var left record
	if _, err := bucket.GetJSON(t.Context(), "format", &left); err != nil || left != newer {
		t.Errorf("the record is now %+v, %v, want it unchanged", left, err)
	}
}
