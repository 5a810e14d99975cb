package upgrade

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hubcloud/streams"
	"hubcloud/streams/jsapi"
	"hubcloud/test/harness"
)

// TestNewerFormatOfBroker starts replicas on an external broker: one records the format there, and
// none starts once a later program has recorded a newer one.
func TestNewerFormatOfBroker(t *testing.T) {
	t.Parallel()
	s := harness.Start(t)
	credentials := filepath.Join(s.Dir, "nats-credentials.json")
	replica := harness.Joining(
		t, harness.Place{}, s.MQTT, s.NATS, "--roles", "api", "--nats-url", "nats://"+s.NATS,
		"--nats-credentials", credentials, "--public-mqtt", s.MQTT, "--postgres-url",
		"postgres://hubcloud@localhost/postgres?host="+filepath.Join(s.Dir, "postgres", "socket"),
		"--ca-cert", filepath.Join(s.Dir, "ca", "ca.pem"),
		"--ca-key", filepath.Join(s.Dir, "ca", "ca-key.pem"),
	)
	replica.Begin()
	replica.Stop()

	access, err := streams.ReadCredentials(credentials)
	if err != nil {
		t.Fatal(err)
	}
	conns, err := streams.Connect(t.Context(), access)
	if err != nil {
		t.Fatal(err)
	}
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
