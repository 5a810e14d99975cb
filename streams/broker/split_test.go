package broker_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hubcloud/streams/broker"
)

// fence is the folder that keeps versions with one server from starting. Part of its name is a
// pattern of theirs, so it must not change.
const fence = ".hubcloud-probe-this-data-needs-a-newer-hubcloud.tmp"

// TestMovesTheAccountCloud checks that a data directory of a version with one server, and one whose
// move was interrupted, keep all streams and messages, and that versions with one server cannot
// start on the result.
func TestMovesTheAccountCloud(t *testing.T) {
	t.Parallel()
	cfg := config(t, t.TempDir())
	first := start(t, cfg)
	conns := connect(t, first)
	fill(t, conns)
	want := contents(t, conns)
	conns.Close()
	stop(t, first)
	var (
		store  = filepath.Join(cfg.DataDir, "nats")
		old    = filepath.Join(store, "jetstream", "CLOUD")
		moved  = filepath.Join(store, "durable", "jetstream", "CLOUD")
		remove = func(t *testing.T, path string) {
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
		}
		moveBack = func(t *testing.T) {
			if err := os.Rename(moved, old); err != nil {
				t.Fatal(err)
			}
		}
	)
	for _, c := range []struct {
		name string
		make func(t *testing.T)
	}{
		{"of a version with one server", func(t *testing.T) {
			moveBack(t)
			remove(t, filepath.Join(store, "durable"))
			remove(t, filepath.Join(store, fence))
		}},
		{"interrupted after the fence's folder", func(t *testing.T) {
			moveBack(t)
			remove(t, filepath.Join(store, "durable"))
			remove(t, filepath.Join(store, fence, "README"))
		}},
		{"interrupted after the fence", func(t *testing.T) {
			moveBack(t)
			remove(t, filepath.Join(store, "durable"))
		}},
		{"interrupted after the new folder", moveBack},
		{"moved, with the probe of a crash", func(t *testing.T) {
			if err := os.WriteFile(
				filepath.Join(store, ".hubcloud-probe-1.tmp"), []byte("x"), 0o600,
			); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.make(t)
			s := start(t, cfg)
			conns := connect(t, s)
			if got := contents(t, conns); !slices.Equal(got, want) {
				t.Errorf(
					"streams: got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"),
				)
			}
			if missing, err := s.NotRecovered(); err != nil || len(missing) > 0 {
				t.Errorf("NotRecovered: got %v, error %v, want none", missing, err)
			}
			conns.Close()
			stop(t, s)
			if _, err := os.Stat(old); !os.IsNotExist(err) {
				t.Errorf("%s: got error %v, want that it does not exist", old, err)
			}
			// A version with one server starts with this, and ends when it fails.
			probes, err := filepath.Glob(filepath.Join(store, ".hubcloud-probe-*.tmp"))
			if err != nil || len(probes) != 1 {
				t.Fatalf("probes: got %v, error %v, want only the fence", probes, err)
			}
			err = os.Remove(probes[0])
			if err == nil || !strings.Contains(err.Error(), "needs-a-newer-hubcloud") {
				t.Errorf("removing the fence: got %v, want an error with the reason", err)
			}
		})
	}

	if err := os.MkdirAll(filepath.Join(old, "streams"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := broker.Start(t.Context(), cfg); err == nil ||
		!strings.Contains(err.Error(), "CLOUD exist twice") {
		t.Errorf("Start with two accounts CLOUD: got %v, want an error", err)
	}
}
