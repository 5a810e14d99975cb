package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"hubcloud/streams/streamstest"
)

func TestInstalledBinariesAreOrdered(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	fake := func(name string, major int) string {
		dir := filepath.Join(root, name)
		streamstest.Must(t, os.MkdirAll(dir, 0o755))
		script := fmt.Sprintf("#!/bin/sh\necho 'postgres (PostgreSQL) %d.4 (Debian)'\n", major)
		for _, program := range []string{"initdb", "postgres"} {
			streamstest.Must(t, os.WriteFile(filepath.Join(dir, program), []byte(script), 0o755))
		}
		return dir
	}
	old, path, newest := fake("old", 9), fake("path", 14), fake("newest", 17)
	middle, empty := fake("middle", 16), filepath.Join(root, "empty")
	got := installedBinaries(t.Context(), []string{path, old, middle, empty, newest})
	want := []binaries{{path, 14}, {newest, 17}, {middle, 16}}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := installedBinaries(t.Context(), []string{empty, middle, newest}); len(got) != 2 ||
		got[0].major != 17 {
		t.Errorf("without the first directory: got %v, want version 17 and 16", got)
	}
}
