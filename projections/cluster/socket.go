package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// maxSocketPath is the longest path that every system allows for a Unix socket: 103 bytes on macOS,
// 107 on Linux.
const maxSocketPath = 103

// socketDir is the directory of the server's socket: nobody but the server's user and root may
// enter it.
type socketDir struct {
	path string
	// temporary directories are removed with the server; the one in the data directory stays.
	temporary bool
}

// chooseSocketDir gives `socket` in dir, or, when that path is too long for a socket, a short one
// in the system's directory for temporary files. That one has a name made from dir, so that
// whatever a killed process left is used and then removed by the next.
func chooseSocketDir(dir string, owner identity) (socketDir, error) {
	chosen := socketDir{path: filepath.Join(dir, "socket")}
	if len(socketFile(chosen.path)) > maxSocketPath {
		name := sha256.Sum256([]byte(dir))
		chosen = socketDir{
			path:      filepath.Join(os.TempDir(), "hubcloud-"+hex.EncodeToString(name[:8])),
			temporary: true,
		}
		if len(socketFile(chosen.path)) > maxSocketPath {
			chosen.path = filepath.Join("/tmp", filepath.Base(chosen.path))
		}
	}
	if err := os.Mkdir(chosen.path, 0o700); err != nil && !os.IsExist(err) {
		return socketDir{}, err
	}
	// In a directory where everybody may write, the name may be taken by somebody who wants to
	// listen in.
	info, err := os.Lstat(chosen.path)
	if err != nil {
		return socketDir{}, err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || info.Mode().Perm() != 0o700 ||
		(stat.Uid != owner.uid && stat.Uid != uint32(os.Geteuid())) {
		return socketDir{}, fmt.Errorf(
			"%s, meant for the database's socket, is not a directory of ours alone: remove it",
			chosen.path,
		)
	}
	return chosen, owner.adopt(chosen.path)
}

// socketFile is the name that PostgreSQL gives its socket.
func socketFile(dir string) string { return filepath.Join(dir, fmt.Sprintf(".s.PGSQL.%d", port)) }

// remove takes a temporary directory away once no server uses it. What cannot be removed is found
// again by name.
func (s socketDir) remove() {
	if s.temporary {
		_ = os.RemoveAll(s.path)
	}
}
