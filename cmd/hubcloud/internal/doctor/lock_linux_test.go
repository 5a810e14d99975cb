package doctor

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A lock is seen while it is held, without being touched.
func TestLocksAreSeen(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "LOCK")
	if lockHeld(path) {
		t.Error("a file that is not there")
	}
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if lockHeld(path) {
		t.Error("not locked yet")
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		t.Fatal(err)
	}
	if !lockHeld(path) {
		t.Error("locked")
	}
}
