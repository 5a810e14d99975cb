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
	// filesPerHub is the number of open files per hub: its log, its connection, and a share for API
	// clients, which may use a quarter of all files.
	filesPerHub = 3
	// otherFiles is an allowance for everything else, such as the database and the broker's other
	// streams.
	otherFiles = 2_000
	// OwnFiles is the approximate number of open files of a process without clients and hubs.
	OwnFiles = 200
)

// usage is the content of the stores at a start.
type usage struct {
	hubLogs int
	bytes   int64
}

// measure returns the usage of the stores in a data directory. A store that does not exist is
// empty.
func measure(dataDir string) (usage, error) {
	var found usage
	var dirs []string
	for _, store := range stores(dataDir) {
		some, err := filepath.Glob(filepath.Join(store, "jetstream", "*", "streams"))
		if err != nil {
			return usage{}, err
		}
		dirs = append(dirs, some...)
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
			// Unreadable folders count as empty here. Repair and the server report them.
			size, _ := blocks(filepath.Join(dir, name.Name(), "msgs"))
			found.bytes += size
		}
	}
	return found, nil
}

// blocks returns the total size of the files in dir, in bytes. It is 0 if dir does not exist.
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

// OpenFilesNeeded returns the limit of open files that a service with that many hubs needs.
func OpenFilesNeeded(hubs int) uint64 { return uint64(hubs)*filesPerHub + otherFiles }

// storageLimit returns the server's limit of storage: the size of the file system, in bytes. The
// reserve (package disk) keeps the disk from filling up. A limit based on the free space at
// the start would stay too low after a start on a full disk.
func storageLimit(store string) (int64, error) {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(store, &disk); err != nil {
		return 0, fmt.Errorf("read the size of the file system of %s: %w", store, err)
	}
	return int64(disk.Blocks) * int64(disk.Bsize), nil
}

// warnOfOpenFiles logs a warning if the hubs need more open files than the process may have. The
// limit is the hard limit: Go's runtime raises the soft limit to it before main starts.
func warnOfOpenFiles(logger *slog.Logger, hubs int) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		logger.Warn("limit of open files unknown", "error", err)
		return
	}
	if need := OpenFilesNeeded(hubs); limit.Cur < need {
		logger.Warn(
			"limit of open files too low: connections and hub logs will fail; raise it "+
				"(ulimit -n, LimitNOFILE)",
			"open_files", limit.Cur, "open_files_needed", need, "hubs", hubs,
		)
	}
}
