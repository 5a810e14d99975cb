package doctor

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestLockHeld(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "LOCK")
	if lockHeld(path) {
		t.Error("lockHeld is true for a file that does not exist")
	}
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if lockHeld(path) {
		t.Error("lockHeld is true for an unlocked file")
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		t.Fatal(err)
	}
	if !lockHeld(path) {
		t.Error("lockHeld is false for a locked file")
	}
}
