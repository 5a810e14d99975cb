package disk

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestWrite checks that Write creates and replaces a file with its permissions, and leaves no other
// file.
func TestWrite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "file.json")
	for _, content := range []string{"first", "", strings.Repeat("long", 1<<16)} {
		if err := Write(path, []byte(content), 0o640); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != content {
			t.Fatalf("read %d bytes, %v; want %d", len(got), err, len(content))
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v; want 0640", info.Mode(), err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("the folder has %v, %v; want one file", entries, err)
	}
}

// TestFailedWriteChangesNothing also checks that no temporary file is left.
func TestFailedWriteChangesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "folder")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, []byte("text"), 0o600); err == nil {
		t.Error("Write over a folder: got nil, want an error")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("the folder has %v, %v; want the folder alone", entries, err)
	}
	if err := Write(filepath.Join(dir, "none", "file"), nil, 0o600); err == nil {
		t.Error("Write into a missing folder: got nil, want an error")
	}
}

// TestSyncTree checks that SyncTree visits everything that is not skipped.
func TestSyncTree(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"a/file", "b/file", "c/d/file"} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var visited []string
	err := SyncTree(dir, func(path string) bool {
		visited = append(visited, strings.TrimPrefix(path, dir))
		return strings.HasSuffix(path, "b")
	})
	if err != nil {
		t.Fatal(err)
	}
	const want = " /a /a/file /b /c /c/d /c/d/file"
	if got := strings.Join(visited, " "); got != want {
		t.Errorf("visited %q, want %q", got, want)
	}
	if err := SyncTree(filepath.Join(dir, "none"), nil); err == nil {
		t.Error("SyncTree of a missing folder: got nil, want an error")
	}
}

// What root has restored belongs to the owner of the data directory, who runs the service.
func TestGiveTree(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("NOT TRIED: needs root")
	}
	const owner = 65532
	dir := t.TempDir()
	path := filepath.Join(dir, "ca", "key.pem")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, owner, owner); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := GiveTree(dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{filepath.Dir(path), path} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if uid := info.Sys().(*syscall.Stat_t).Uid; uid != owner || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: got owner %d and mode %v, want %d", name, uid, info.Mode(), owner)
		}
	}
}
