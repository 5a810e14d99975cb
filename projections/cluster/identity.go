package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// identity is the user that the server runs as. PostgreSQL does not run as root, so root's server
// runs as another user.
type identity struct {
	uid, gid uint32
	// assumed means that the user is not the one of this process: the server is started with the
	// user's credentials, and the user becomes the owner of the files.
	assumed bool
	// mayCross means that the server gets a capability to pass through directories that its user
	// may not enter.
	mayCross bool
}

// chooseIdentity returns the user of this process. For root it returns the owner of dir, or
// `postgres`, or `nobody`.
func chooseIdentity(dir string) (identity, error) {
	if os.Geteuid() != 0 {
		return identity{uid: uint32(os.Geteuid()), gid: uint32(os.Getegid())}, nil
	}
	info, err := os.Stat(dir)
	switch {
	case err == nil:
		if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Uid != 0 {
			return identity{uid: stat.Uid, gid: stat.Gid, assumed: true}, nil
		}
	case !errors.Is(err, fs.ErrNotExist):
		return identity{}, err
	}
	for _, name := range []string{"postgres", "nobody"} {
		found, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(found.Uid, 10, 32)
		if err != nil || uid == 0 {
			continue
		}
		gid, err := strconv.ParseUint(found.Gid, 10, 32)
		if err != nil {
			continue
		}
		return identity{uid: uint32(uid), gid: uint32(gid), assumed: true}, nil
	}
	// The usual number, for systems without a list of users, such as a container made from scratch.
	const nobody = 65534
	return identity{uid: nobody, gid: nobody, assumed: true}, nil
}

// adopt makes the server's user the owner of a directory and everything in it: the directory is
// new, or root has copied or restored it.
func (id identity) adopt(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); !id.assumed || !ok || stat.Uid == id.uid {
		return nil
	}
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, int(id.uid), int(id.gid))
	})
}

// reaching returns the identity with the rights to reach each of the paths. Other users than root
// cannot reach a data directory under /root or under a temporary directory of root's.
func (id identity) reaching(paths ...string) (identity, error) {
	if !id.assumed {
		return id, nil
	}
	for _, path := range paths {
		closed, err := id.closedAncestor(path)
		if err != nil {
			return identity{}, err
		}
		if closed == "" {
			continue
		}
		if !canGrantCrossing() {
			return identity{}, fmt.Errorf(
				"the server runs as user %d, which may not enter %s on the way to %s: "+
					"allow it (chmod o+x), or use another data directory",
				id.uid,
				closed,
				path,
			)
		}
		id.mayCross = true
	}
	return id, nil
}

// closedAncestor returns the outermost directory on the way to path that the user may not enter;
// empty if there is none.
func (id identity) closedAncestor(path string) (string, error) {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	var closed string
	for dir := path; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return "", err
		}
		enter := fs.FileMode(0o001)
		if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Uid == id.uid {
			enter = 0o100
		} else if ok && stat.Gid == id.gid {
			enter = 0o010
		}
		if info.Mode()&enter == 0 {
			closed = dir
		}
		if dir == filepath.Dir(dir) {
			return closed, nil
		}
	}
}

// environment returns the environment of the server and initdb, without variables that would
// change what they do.
func environment() []string {
	env := []string{"LC_ALL=C", "TZ=UTC"}
	for _, name := range []string{"PATH", "LD_LIBRARY_PATH", "TMPDIR"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}
