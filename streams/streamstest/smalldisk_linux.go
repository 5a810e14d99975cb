package streamstest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"hubcloud/streams"
)

// SmallDisk mounts an empty file system of that many bytes in memory and returns its folder. It
// ends with the test. Where mounting is not allowed the test is skipped.
func SmallDisk(t testing.TB, size int64) string {
	t.Helper()
	dir := t.TempDir()
	if err := MountSmallDisk(t, dir, size); err != nil {
		t.Skipf(
			"SKIPPED, NOT TRIED: a full disk needs a small file system, and this user cannot "+
				"mount one: %v", err,
		)
	}
	return dir
}

// MountSmallDisk is SmallDisk in a folder that exists. It fails where mounting
// is not allowed.
func MountSmallDisk(t testing.TB, dir string, size int64) error {
	t.Helper()
	options := fmt.Sprintf("size=%d,mode=0755", size)
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		return err
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
	return nil
}

// FillDisk fills the file system of dir up to its last block, as another program would, and keeps
// it full: what becomes free is taken too. The function that it returns makes room again.
func FillDisk(t testing.TB, dir string) (empty func()) {
	t.Helper()
	file, err := os.Create(filepath.Join(dir, "of-another-program"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	full := make(chan struct{})
	var filling sync.WaitGroup
	filling.Go(func() {
		sayFull := sync.OnceFunc(func() { close(full) })
		defer sayFull()
		chunk := make([]byte, 1<<20)
		for ctx.Err() == nil {
			for size := len(chunk); size >= 1; {
				n, err := file.Write(chunk[:size])
				if err != nil && n == 0 {
					size /= 2
				}
			}
			sayFull()
			streams.Sleep(ctx, 2*time.Millisecond)
		}
	})
	<-full
	empty = sync.OnceFunc(func() {
		cancel()
		filling.Wait()
		if err := errors.Join(os.Remove(file.Name()), file.Close()); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(empty)
	return empty
}
