package disk

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestOwned: a value is read as it was written, by its owner alone.
func TestOwned(t *testing.T) {
	t.Parallel()
	type value struct{ N int }
	path := filepath.Join(t.TempDir(), "file")
	o, err := OpenOwned(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenOwned(path); !errors.Is(err, ErrInUse) {
		t.Errorf("opened twice: got %v, want ErrInUse", err)
	}
	var got value
	if exists, err := o.Read(100, &got); exists || err != nil {
		t.Errorf("without a file: got %t, %v", exists, err)
	}
	if err := errors.Join(o.Write(value{1}), o.Write(value{2})); err != nil {
		t.Fatal(err)
	}
	if exists, err := o.Read(100, &got); !exists || err != nil || got.N != 2 {
		t.Errorf("got %+v, %t, %v, want 2", got, exists, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
	for _, text := range []string{
		"", "text", `{"N":`, `{"N":1}{}`, `{"N":1,"M":1}`, strings.Repeat(" ", 101),
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := o.Read(100, &got); !errors.Is(err, ErrDamaged) {
			t.Errorf("%q: got %v, want ErrDamaged", text, err)
		}
	}
	if err := o.Close(); err != nil {
		t.Error(err)
	}
}

// A lock was still held after its release while a concurrently forked process had not yet started
// its program: that process had a duplicate of the file.
func TestReleaseEndsTheLockOfDuplicates(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	for round := range 3 {
		lock, err := AcquireLock(path)
		if err != nil {
			t.Fatalf("round %d: AcquireLock() = %v", round, err)
		}
		if _, err := AcquireLock(path); !errors.Is(err, ErrInUse) {
			t.Errorf("round %d: AcquireLock() of a locked file = %v, want ErrInUse", round, err)
		}
		duplicate, err := syscall.Dup(int(lock.file.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = syscall.Close(duplicate) })
		if err := lock.Release(); err != nil {
			t.Errorf("round %d: Release() = %v", round, err)
		}
	}
}
