package filelock_test

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"

	"hubcloud/streams/filelock"
)

// A lock was still held after its release while a concurrently forked process had not yet started
// its program: that process had a duplicate of the file.
func TestReleaseEndsTheLockOfDuplicates(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	for round := range 3 {
		lock, err := filelock.Acquire(path)
		if err != nil {
			t.Fatalf("round %d: Acquire() = %v", round, err)
		}
		if _, err := filelock.Acquire(path); !errors.Is(err, filelock.ErrInUse) {
			t.Errorf("round %d: Acquire() of a locked file = %v, want ErrInUse", round, err)
		}
		duplicate, err := syscall.Dup(int(filelock.Descriptor(lock)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = syscall.Close(duplicate) })
		if err := lock.Release(); err != nil {
			t.Errorf("round %d: Release() = %v", round, err)
		}
	}
}

func TestAcquireWithoutFolder(t *testing.T) {
	t.Parallel()
	_, err := filelock.Acquire(filepath.Join(t.TempDir(), "missing", "lock"))
	if err == nil || errors.Is(err, filelock.ErrInUse) {
		t.Errorf("Acquire() in a missing folder = %v, want another error than ErrInUse", err)
	}
}
