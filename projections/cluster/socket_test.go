package cluster

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestALongPathGetsAShortSocket(t *testing.T) {
	t.Parallel()
	deep := filepath.Join(t.TempDir(), strings.Repeat("long/", 30))
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	c := start(t, filepath.Join(deep, "postgres"))
	run(t, c.URL(), "SELECT 1")
	info, err := os.Stat(c.socket.path)
	if err != nil || info.Mode().Perm() != 0o700 || !c.socket.temporary {
		t.Errorf(
			"socket directory %s: got %v, %v, want a temporary one of mode 0700", c.socket.path,
			info, err,
		)
	}
	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(c.socket.path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s after Stop: got %v, want no such file", c.socket.path, err)
	}
}

func TestSocketDirectoryOfAnotherUserIsRejected(t *testing.T) {
	t.Parallel()
	deep := filepath.Join(t.TempDir(), strings.Repeat("long/", 30), "postgres")
	chosen, err := chooseSocketDir(deep, identity{uid: uint32(os.Geteuid())})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(chosen.remove)
	if err := os.Chmod(chosen.path, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := chooseSocketDir(deep, identity{uid: uint32(os.Geteuid())}); err == nil {
		t.Error("a directory that every user may write to was accepted for the socket")
	}
}
