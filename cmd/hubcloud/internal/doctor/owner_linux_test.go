package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hubcloud/cmd/hubcloud/internal/installation"
	"hubcloud/streams/streamstest"
)

// TestOwners looks for files of another user while another check tests the disk. The doctor of root
// reported its own test file, which belongs to root, as a file that the service cannot write.
func TestOwners(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	uid := os.Getuid()
	if uid == 0 {
		uid = 1 // a service that ran as root has no problem with owners
		streamstest.Must(t, os.Chown(dir, uid, -1))
	}
	check := func(uid int) string {
		f := newFindings()
		target := &target{Config: Config{DataDir: dir}}
		target.Started = &installation.Started{UID: uid}
		checkOwners(target, f)
		return f.component("service").Detail
	}
	file, err := os.CreateTemp(dir, probeFile)
	streamstest.Must(t, err)
	defer file.Close()
	if got := check(uid); got != "" {
		t.Errorf("with the file of a test: got %q, want no finding", got)
	}
	lock := filepath.Join(dir, "LOCK")
	streamstest.Must(t, os.WriteFile(lock, nil, 0o600))
	if os.Getuid() != 0 {
		uid++ // all files are of another user than the service's
		lock = dir
	}
	if got := check(uid); !strings.Contains(got, lock+" belongs to") {
		t.Errorf("with a file of another user: got %q, want its name", got)
	}
}
