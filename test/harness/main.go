package harness

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
)

// Main runs the tests of a package, as many at a time as parallel says, removes what Binary and
// Start have made, and exits. A parallel of 0 leaves the number to -parallel. Call it from
// TestMain.
func Main(m *testing.M, parallel int) { os.Exit(Run(m, parallel)) }

// Run is Main, but returns the exit code.
func Run(m *testing.M, parallel int) int {
	flag.Parse()
	if parallel > 0 {
		if err := flag.Set("test.parallel", strconv.Itoa(parallel)); err != nil {
			panic(err)
		}
	}
	code := m.Run()
	wholeRun.end()
	if wholeRun.Failed() {
		code = max(code, 1)
	}
	if dir := built.Load(); dir != nil {
		os.RemoveAll(*dir)
	}
	if installed.dir != "" {
		os.RemoveAll(installed.dir)
	}
	return code
}

// installed is a data directory whose service has started once and was stopped. A start on a copy
// of it needs no new database and no new streams, which takes most of the time of a first start.
var installed struct {
	once sync.Once
	dir  string
}

// dataDir returns a new data directory for a service with the given arguments: a copy of one
// installation, or an empty one for arguments that only a first start takes.
func dataDir(t testing.TB, args []string) string {
	t.Helper()
	dir := t.TempDir()
	if !slices.Contains(args, "--environment") && !slices.Contains(args, "--shards") {
		Install(t, dir)
	}
	return dir
}

// Install copies an installation without organizations into an empty folder, as Start does.
func Install(t testing.TB, dir string) {
	t.Helper()
	installed.once.Do(func() {
		made, err := os.MkdirTemp("", "hubcloud-test-data-")
		Must(t, err)
		s := newService(t, made, nil)
		s.Begin()
		s.Stop()
		// A copy is of no service that has run.
		for _, file := range []string{"endpoints.json", "service.json"} {
			os.Remove(filepath.Join(made, file))
		}
		installed.dir = made
	})
	if installed.dir == "" {
		t.Fatal("no installation to copy: the test that made it failed")
	}
	if out, err := exec.Command("cp", "-a", installed.dir+"/.", dir).CombinedOutput(); err != nil {
		t.Fatal(fmt.Errorf("copy an installation: %w: %s", err, out))
	}
}
