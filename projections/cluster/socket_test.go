package cluster

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hubcloud/streams/streamstest"
)

func TestALongPathGetsAShortSocket(t *testing.T) {
	t.Parallel()
	deep := filepath.Join(t.TempDir(), strings.Repeat("long/", 30))
	streamstest.Must(t, os.MkdirAll(deep, 0o755))
	c := start(t, filepath.Join(deep, "postgres"))
	run(t, c.URL(), "SELECT 1")
	info, err := os.Stat(c.socket.path)
	if err != nil || info.Mode().Perm() != 0o700 || !c.socket.temporary {
		t.Errorf(
			"socket directory %s: got %v, %v, want a temporary one of mode 0700", c.socket.path,
			info, err,
		)
	}
	streamstest.Must(t, c.Stop(t.Context()))
	if _, err := os.Stat(c.socket.path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s after Stop: got %v, want no such file", c.socket.path, err)
	}
}

func TestSocketDirectoryOfAnotherUserIsRejected(t *testing.T) {
	t.Parallel()
	deep := filepath.Join(t.TempDir(), strings.Repeat("long/", 30), "postgres")
	chosen, err := chooseSocketDir(deep, identity{uid: uint32(os.Geteuid())})
	streamstest.Must(t, err)
	t.Cleanup(chosen.remove)
	streamstest.Must(t, os.Chmod(chosen.path, 0o777))
	if _, err := chooseSocketDir(deep, identity{uid: uint32(os.Geteuid())}); err == nil {
		t.Error("a directory that every user may write to was accepted for the socket")
	}
}
