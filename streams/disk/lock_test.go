package disk_test

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"

	"hubcloud/streams/disk"
)

// A lock was still held after its release while a concurrently forked process had not yet started
// its program: that process had a duplicate of the file.
func TestReleaseEndsTheLockOfDuplicates(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	for round := range 3 {
		lock, err := disk.AcquireLock(path)
		if err != nil {
			t.Fatalf("round %d: AcquireLock() = %v", round, err)
		}
		if _, err := disk.AcquireLock(path); !errors.Is(err, disk.ErrInUse) {
			t.Errorf("round %d: AcquireLock() of a locked file = %v, want ErrInUse", round, err)
		}
		duplicate, err := syscall.Dup(int(disk.Descriptor(lock)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = syscall.Close(duplicate) })
		if err := lock.Release(); err != nil {
			t.Errorf("round %d: Release() = %v", round, err)
		}
	}
}

func TestLockWithoutFolder(t *testing.T) {
	t.Parallel()
	_, err := disk.AcquireLock(filepath.Join(t.TempDir(), "missing", "lock"))
	if err == nil || errors.Is(err, disk.ErrInUse) {
		t.Errorf("AcquireLock() in a missing folder = %v, want another error than ErrInUse", err)
	}
}
