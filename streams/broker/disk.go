package broker

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"hubcloud/streams"
)

const (
	// filesPerHub is one for the hub's log while it is written to, one for its connection, and one
	// for the clients of the API, who have a quarter of all.
	filesPerHub = 3
	// otherFiles is what everything else may need: API requests and streams, the database, the
	// broker's own streams.
	otherFiles = 2_000
	// OwnFiles is about how many files the process has open without any client, hub or log that is
	// written to.
	OwnFiles = 200
)

// usage is what the streams of former runs take.
type usage struct {
	hubLogs int
	bytes   int64
}

// measure looks through the store, two levels of folders and their message blocks. A store that is
// not there yet is empty.
func measure(store string) (usage, error) {
	var found usage
	dirs, err := filepath.Glob(filepath.Join(store, "jetstream", "*", "streams"))
	if err != nil {
		return usage{}, err
	}
	for _, dir := range dirs {
		names, err := os.ReadDir(dir)
		if err != nil {
			return usage{}, err
		}
		for _, name := range names {
			if strings.HasPrefix(name.Name(), streams.HubStream("")) {
				found.hubLogs++
			}
			// What cannot be read does not count: repair and the server tell of it.
			size, _ := blocks(filepath.Join(dir, name.Name(), "msgs"))
			found.bytes += size
		}
	}
	return found, nil
}

func blocks(dir string) (size int64, err error) {
	files, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	for _, file := range files {
		if info, err := file.Info(); err == nil && !info.IsDir() {
			size += info.Size()
		}
	}
	return size, nil
}

// HubLogs counts the hub logs that a broker which does not run has on disk in its data directory;
// none when it was never started.
func HubLogs(dataDir string) (int, error) {
	found, err := measure(filepath.Join(dataDir, storeFolder))
	return found.hubLogs, err
}

// OpenFilesNeeded is how many files a service with so many hubs must be allowed to have open.
func OpenFilesNeeded(hubs int) uint64 { return uint64(hubs)*filesPerHub + otherFiles }

// storageLimit is how much the streams may take: the size of the file system. What keeps the disk
// from filling up is the reserve (package diskspace), which follows what is free now. A limit made
// of what is free at the start would stay low after a start on a full disk, although there is room
// by now.
func storageLimit(store string) (int64, error) {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(store, &disk); err != nil {
		return 0, fmt.Errorf("size of the file system of %s: %w", store, err)
	}
	return int64(disk.Blocks) * int64(
		disk.Bsize,
	), nil //nolint:unconvert // the types differ between systems
}

// warnOfOpenFiles says when the hubs that are known need more open files than the process may have.
// The limit is the hard one: Go's runtime has raised the soft limit to it before main began.
func warnOfOpenFiles(log *slog.Logger, hubs int) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		log.Warn("cannot tell how many files may be open", "error", err)
		return
	}
	if need := OpenFilesNeeded(hubs); limit.Cur < need {
		log.Warn(
			"the limit of open files is too low for the hubs: connections and event logs will "+
				"fail; raise it (ulimit -n, LimitNOFILE)",
			"open_files",
			limit.Cur,
			"open_files_needed",
			need,
			"hubs",
			hubs,
		)
	}
}
