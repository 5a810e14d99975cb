//go:build linux

package lossyfs

import (
	"bytes"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"hubcloud/streams/streamstest"
)

func mounted(t *testing.T) *Disk { t.Helper(); return Mount(t, t.TempDir()) }

func (d *Disk) path(name ...string) string {
	return filepath.Join(append([]string{d.Dir}, name...)...)
}

// cutQuietly cuts the power while no process uses the disk.
func (d *Disk) cutQuietly(loss Loss, seed uint64) { d.CutPower(loss, seed, func() {}, func() {}) }

// write writes a file, and syncs the file and its folder if asked to.
func write(t *testing.T, path string, data []byte, syncFile, syncFolder bool) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o640)
	streamstest.Must(t, err)
	_, err = f.Write(data)
	streamstest.Must(t, err)
	if syncFile {
		streamstest.Must(t, f.Sync())
	}
	streamstest.Must(t, f.Close())
	if syncFolder {
		syncDir(t, filepath.Dir(path))
	}
}

func syncDir(t *testing.T, path string) {
	t.Helper()
	d, err := os.Open(path)
	streamstest.Must(t, err)
	streamstest.Must(t, d.Sync())
	streamstest.Must(t, d.Close())
}

func (d *Disk) wantFile(t *testing.T, name, want string) {
	t.Helper()
	got, err := os.ReadFile(d.path(name))
	if err != nil || string(got) != want {
		t.Errorf("%s: got %q, %v; want %q", name, got, err, want)
	}
}

func (d *Disk) wantNone(t *testing.T, name string) {
	t.Helper()
	if _, err := os.Lstat(d.path(name)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s after the power cut: got error %v, want fs.ErrNotExist", name, err)
	}
}

func TestUnsyncedChangesAreLost(t *testing.T) {
	t.Parallel()
	d := mounted(t)
	write(t, d.path("kept"), []byte("kept"), true, true)
	write(t, d.path("empty"), []byte("content not synced"), false, true)
	write(t, d.path("new"), []byte("folder not synced"), true, false)
	streamstest.Must(t, os.Mkdir(d.path("folder"), 0o700))
	write(t, d.path("folder", "file"), []byte("name of its folder not synced"), true, true)
	d.cutQuietly(Everything, 0)
	d.wantFile(t, "kept", "kept")
	d.wantFile(t, "empty", "")
	d.wantFile(t, "new", "folder not synced")
	d.wantNone(t, "folder")

	write(t, d.path("kept"), []byte("overwritten, not synced"), false, false)
	streamstest.Must(t, os.Remove(d.path("empty")))
	streamstest.Must(t, os.Rename(d.path("new"), d.path("moved")))
	d.wantFile(t, "kept", "overwritten, not synced")
	d.cutQuietly(Everything, 0)
	d.wantFile(t, "kept", "kept")
	d.wantFile(t, "empty", "")
	d.wantFile(t, "new", "folder not synced")
	d.wantNone(t, "moved")
}

// TestWriteWithOSync checks that a file opened with O_SYNC keeps each write.
func TestWriteWithOSync(t *testing.T) {
	t.Parallel()
	d := mounted(t)
	f, err := os.OpenFile(d.path("log"), os.O_CREATE|os.O_WRONLY|os.O_SYNC, 0o600)
	streamstest.Must(t, err)
	syncDir(t, d.Dir)
	for range 3 {
		_, err = f.WriteString("line\n")
		streamstest.Must(t, err)
	}
	streamstest.Must(t, f.Close())
	d.cutQuietly(Everything, 0)
	d.wantFile(t, "log", "line\nline\nline\n")
}

// TestRename checks that a rename over an existing file is kept wholly or not at all.
func TestRename(t *testing.T) {
	t.Parallel()
	d := mounted(t)
	write(t, d.path("f"), []byte("old"), true, true)
	for _, synced := range []bool{false, true} {
		write(t, d.path("f.tmp"), []byte("new"), true, false)
		streamstest.Must(t, os.Rename(d.path("f.tmp"), d.path("f")))
		d.wantFile(t, "f", "new")
		if synced {
			syncDir(t, d.Dir)
		}
		d.cutQuietly(Everything, 0)
		if !synced {
			d.wantFile(t, "f", "old")
			d.wantFile(t, "f.tmp", "new")
			continue
		}
		d.wantFile(t, "f", "new")
		d.wantNone(t, "f.tmp")
	}
}

// TestFileModel compares a file with a slice of bytes over random writes, syncs and cuts. After a
// cut with random loss, each byte must be of either version.
func TestFileModel(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var f file
		var now, kept []byte
		for range 60 {
			switch random.IntN(8) {
			case 0:
				f.sync()
				kept = slices.Clone(now)
			case 1:
				size := random.IntN(5 * pageSize)
				f.resize(int64(size))
				now = slices.Grow(now, size)
				if old := len(now); size > old {
					now = append(now, make([]byte, size-old)...)
				} else {
					now = slices.Clone(now[:size])
				}
			case 2:
				f.cut(nil)
				now = slices.Clone(kept)
			default:
				data := bytes.Repeat([]byte{byte(1 + random.IntN(255))}, random.IntN(2*pageSize))
				offset := random.IntN(4 * pageSize)
				f.writeAt(data, int64(offset))
				if end := offset + len(data); end > len(now) {
					now = append(now, make([]byte, end-len(now))...)
				}
				copy(now[offset:], data)
			}
			got := make([]byte, f.now.size)
			f.readAt(got, 0)
			if !bytes.Equal(got, now) {
				t.Fatalf("got %d bytes, want %d, or the contents differ", len(got), len(now))
			}
		}
		f.cut(random)
		got := make([]byte, f.now.size)
		f.readAt(got, 0)
		for i, b := range got {
			if (i >= len(now) || b != now[i]) && (i >= len(kept) || b != kept[i]) && b != 0 {
				t.Fatalf("byte %d: got a byte of neither version", i)
			}
		}
	}
}
