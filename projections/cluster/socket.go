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

// socketDir is the directory of the server's socket. Only the server's user and root may enter it.
type socketDir struct {
	path string
	// temporary means that the directory is removed with the server.
	temporary bool
}

// chooseSocketDir returns `socket` in dir. If that path is too long for a socket, it returns a
// directory for temporary files. Its name is derived from dir, so that the next process finds and
// removes the directory of a killed one.
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
	// In a directory that every user may write to, another user may have created this one to listen
	// on the socket.
	info, err := os.Lstat(chosen.path)
	if err != nil {
		return socketDir{}, err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || info.Mode().Perm() != 0o700 ||
		(stat.Uid != owner.uid && stat.Uid != uint32(os.Geteuid())) {
		return socketDir{}, fmt.Errorf(
			"%s, the directory of the database's socket, is open to other users: remove it",
			chosen.path,
		)
	}
	return chosen, owner.adopt(chosen.path)
}

// socketFile returns the path of PostgreSQL's socket in dir.
func socketFile(dir string) string { return filepath.Join(dir, fmt.Sprintf(".s.PGSQL.%d", port)) }

// remove removes a temporary directory. If that fails, the next process finds the directory by
// name.
func (s socketDir) remove() {
	if s.temporary {
		_ = os.RemoveAll(s.path)
	}
}
