package broker

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"hubcloud/streams"
	"hubcloud/streams/durablefile"
)

const (
	// durableFolder is the folder of the durable server's streams, in storeFolder: both servers'
	// streams are on the same file system, so that a folder can be moved from one to the other.
	durableFolder = "durable"
	// fenceFolder is a folder in storeFolder that makes programs from before the durable server
	// fail at their start. They would not find the account CLOUD, and would create an empty one.
	// Such a program first removes what has a name like that of a probe of the disk, and a folder
	// with content cannot be removed: its error message has the folder's name.
	fenceFolder = ".hubcloud-probe-this-data-needs-a-newer-hubcloud.tmp"
	fenceFile   = "README"
	fenceText   = "The streams of this data directory are those of two servers. Versions of hubcloud " +
		"from before\nthat must not start here: they would not find the directory in " + durableFolder +
		"/. Start a newer\nversion. This folder makes earlier versions fail at their start; keep it.\n"
)

// errTwoDirectories reports streams of the account CLOUD in the folders of both servers.
var errTwoDirectories = errors.New(
	"the streams of the account CLOUD exist twice: an earlier version has been started on this " +
		"data directory; move the folder that is wrong to another place",
)

// split brings the streams of an installation into the form for two servers: it moves the account
// CLOUD to the durable server, and keeps earlier versions from starting on the result. It may be
// interrupted at any point and called again. No server may run.
func split(store string) error {
	if err := raiseFence(store); err != nil {
		return err
	}
	cloud := string(streams.AccountCloud)
	from := filepath.Join(store, "jetstream", cloud)
	to := filepath.Join(store, durableFolder, "jetstream", cloud)
	if _, err := os.Lstat(from); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	if _, err := os.Lstat(to); err == nil {
		return fmt.Errorf("%w: %s and %s", errTwoDirectories, from, to)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	// The new folders must be on disk before anything is in them.
	if err := syncAll(filepath.Dir(filepath.Dir(to)), store); err != nil {
		return err
	}
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return syncAll(filepath.Dir(to), filepath.Dir(from))
}

func syncAll(dirs ...string) error {
	for _, dir := range dirs {
		if err := durablefile.Sync(dir); err != nil {
			return err
		}
	}
	return nil
}

// raiseFence creates fenceFolder. It is on disk when raiseFence returns.
func raiseFence(store string) error {
	folder := filepath.Join(store, fenceFolder)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	file := filepath.Join(folder, fenceFile)
	if _, err := os.Stat(file); err == nil {
		return nil
	}
	if err := durablefile.Write(file, []byte(fenceText), 0o600); err != nil {
		return err
	}
	return durablefile.Sync(store)
}
