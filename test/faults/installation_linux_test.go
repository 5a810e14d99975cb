package faults

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hubcloud/streams/durablefile"
	"hubcloud/test/harness"
	"hubcloud/test/lossyfs"
)

// TestPowerCutAfterTheInstallation cuts the power right after the first start. Regression: with
// --sync 2m the broker had synced nothing yet, and the installation was lost. The installation must
// be on disk once the service is ready.
func TestPowerCutAfterTheInstallation(t *testing.T) {
	t.Parallel()
	disk := lossyfs.Mount(t, t.TempDir())
	s := harness.StartIn(t, filepath.Join(disk.Dir, "data"), "--sync", "2m")
	read := func() string {
		var all strings.Builder
		for _, name := range []string{
			"nats/installation.json", "nats-credentials.json", "ca/ca.pem", "ca/ca-key.pem",
			"replica-id",
		} {
			text, err := os.ReadFile(filepath.Join(s.Dir, filepath.FromSlash(name)))
			if err != nil {
				t.Fatal(err)
			}
			all.Write(text)
		}
		return all.String()
	}
	want := read()
	disk.CutPower(lossyfs.Everything, 1, s.KillAll, s.WaitGone)
	s.Begin()
	if got := read(); got != want {
		t.Errorf("installation after the power cut: got\n%s\nwant\n%s", got, want)
	}
}

// TestPowerCutWhileTheAccountMoves cuts the power while the service moves the account CLOUD of a
// data directory from a version whose broker was one server. Nothing may be lost, and while the
// account is moved, the folder that keeps earlier versions from starting must be there.
func TestPowerCutWhileTheAccountMoves(t *testing.T) {
	t.Parallel()
	disk := lossyfs.Mount(t, t.TempDir())
	s := harness.StartIn(t, filepath.Join(disk.Dir, "data"))
	tenant := harness.NewTenant(t, s, "Moved")
	read := func() string {
		var text strings.Builder
		for _, path := range []string{"/sites", "/hubs", "/members"} {
			text.Write(tenant.Must(http.MethodGet, path, nil, http.StatusOK).Body)
		}
		return text.String()
	}
	tenant.Must(http.MethodPost, "/sites", map[string]string{"name": "Kept"}, http.StatusCreated)
	want := read()
	s.Stop()

	store := filepath.Join(s.Dir, "nats")
	fence := filepath.Join(store, ".hubcloud-probe-this-data-needs-a-newer-hubcloud.tmp", "README")
	old := filepath.Join(store, "jetstream", "CLOUD")
	moved := filepath.Join(store, "durable", "jetstream", "CLOUD")
	exists := func(path string) bool {
		_, err := os.Stat(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		return err == nil
	}
	for round := range 2 {
		if !exists(old) {
			if err := os.Rename(moved, old); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(
			os.RemoveAll(filepath.Join(store, "durable")), os.RemoveAll(filepath.Dir(fence)),
			durablefile.SyncTree(store, nil),
		); err != nil {
			t.Fatal(err)
		}
		s.Launch()
		poll := time.NewTicker(time.Millisecond)
		for deadline := time.Now().Add(time.Minute); !exists(fence); <-poll.C {
			if time.Now().After(deadline) {
				t.Fatalf("the account does not move:\n%s", s.Log())
			}
		}
		poll.Stop()
		harness.AnyMoment(0, 5*time.Millisecond)
		disk.CutPower(lossyfs.Loss(round%2), uint64(round), s.KillAll, s.WaitGone)
		t.Logf("round %d: account moved: %t", round, exists(moved))
		if exists(moved) == exists(old) || exists(moved) && !exists(fence) {
			t.Fatalf(
				"round %d: moved account: %t, old account: %t, fence: %t", round, exists(moved),
				exists(old), exists(fence),
			)
		}
	}
	s.Begin()
	if got := read(); got != want {
		t.Errorf("answers after the power cuts: got\n%s\nwant\n%s", got, want)
	}
}
