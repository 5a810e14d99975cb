package upgrade

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hubcloud/test/harness"
	"hubcloud/test/natscluster"
)

// ofCluster ends the name of what a cluster has stored.
const ofCluster = "-cluster"

// TestKept starts the program on what each release has stored.
func TestKept(t *testing.T) {
	t.Parallel()
	archives, err := filepath.Glob("testdata/*.tar.gz")
	if err != nil || len(archives) < 2 {
		t.Fatalf("testdata: got %v, %v, want at least two archives", archives, err)
	}
	for _, archive := range archives {
		name := strings.TrimSuffix(archive, ".tar.gz")
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			dir := unpack(t, archive)
			if !strings.HasSuffix(name, ofCluster) {
				compare(t, harness.StartIn(t, dir, retention, "--disk-reserve=0"), name)
				return
			}
			broker := natscluster.StartIn(t, dir, shards)
			broker.Arguments = append(broker.Arguments, retention)
			service := broker.Join()
			compare(t, service, name)
			rejectNewer(t, service, broker.Access)
		})
	}
}

// unpack unpacks an archive, and checks that the build of its release has made it.
func unpack(t *testing.T, archive string) string {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("tar", "-xzf", archive, "-C", dir).CombinedOutput(); err != nil {
		t.Fatalf("tar: %v: %s", err, out)
	}
	version := strings.TrimSuffix(filepath.Base(archive), ".tar.gz")
	if strings.HasSuffix(version, ofCluster) {
		return dir
	}
	text, err := os.ReadFile(filepath.Join(dir, "format.json"))
	if err != nil || !strings.Contains(string(text), `"`+version+`"`) {
		t.Errorf("format.json: got %s, %v, want the version %s", text, err, version)
	}
	return dir
}

// compare checks that clients see what they saw when a release had stored it.
func compare(t *testing.T, service *harness.Service, name string) {
	t.Helper()
	manifest, err := os.ReadFile(name + ".json")
	harness.Must(t, err)
	var want seen
	harness.Must(t, json.Unmarshal(manifest, &want))
	hubs := slices.Sorted(maps.Keys(want.Events))
	if len(hubs) == 0 {
		t.Fatalf("%s.json: got no hub", name)
	}
	got := look(t, service, want.Key, hubs)
	for path, resource := range want.Resources {
		if at := missing(resource, got.Resources[path], path); at != "" {
			t.Errorf(
				"%s differs: got %s, want %s", at, text(t, got.Resources[path]), text(t, resource),
			)
		}
	}
	client := harness.NewClient(t, service.Base(), want.Key)
	for _, hub := range hubs {
		events := want.Events[hub]
		if at := missing(events, got.Events[hub], hub); at != "" || len(events) < 10 {
			t.Errorf(
				"%s differs: got %s, want %s", at, text(t, got.Events[hub]), text(t, events),
			)
			continue
		}
		middle := len(events) / 2
		cursor := events[middle-1].(map[string]any)["cursor"].(string)
		rest := eventsAfter(client, hub, cursor)
		if at := missing(events[middle:], rest, hub); at != "" {
			t.Errorf("%s after %s: got %s", at, cursor, text(t, rest))
		}
	}
	client.Create("/sites", map[string]string{"name": "Pier"})
}

// TestNewerFormat starts the program on a directory that a later program wrote.
func TestNewerFormat(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "format.json")
	content := []byte(`{"format":1000,"version":"99.1.0"}`)
	harness.Must(t, os.WriteFile(file, content, 0o600))
	_, stderr, code := harness.RunBinary(
		t, "serve", "--data-dir", dir, "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0",
		"--mqtt", "127.0.0.1:0", "--nats", "127.0.0.1:0",
	)
	if code != 1 || !strings.Contains(stderr, "was written by hubcloud 99.1.0, format 1000") {
		t.Errorf("got exit code %d: %s, want 1 and the version that wrote it", code, stderr)
	}
	if left, err := os.ReadFile(file); err != nil || string(left) != string(content) {
		t.Errorf("format.json: got %s, %v, want it unchanged", left, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "nats")); err == nil {
		t.Error("nats/ was created, want the directory untouched")
	}
}
