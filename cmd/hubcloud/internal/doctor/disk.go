package doctor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// place is what is kept on a disk.
type place struct {
	dir  string
	what []string
	free syscall.Statfs_t
}

// checkDisk says how much room the disks have on which the data directory, the broker's streams and
// the database are.
func checkDisk(_ context.Context, p *patient, f *findings) {
	if p.DataDir == "" {
		f.add(
			Skipped,
			"there is no data directory here: the disks of broker and database are on other machines",
			"",
		)
		return
	}
	places, err := p.places()
	if err != nil {
		f.add(Unknown, err.Error(), "see whether the disk is mounted (df)")
		return
	}
	for _, at := range places {
		judgePlace(p.Limits, at, f)
	}
	judgeReserve(p, f)
	if len(places) == 0 {
		f.add(Skipped, fmt.Sprintf("there is no data directory %s", p.DataDir), "")
	}
}

// judgeReserve asks the running service whether its disk has the reserve, and whether its broker
// can store.
func judgeReserve(p *patient, f *findings) {
	families, err := p.metrics()
	if err != nil {
		return // the component service tells why
	}
	if failed, ok := gauge(families, "hubcloud_broker_store_failed"); ok && failed > 0 {
		f.add(
			Wrong,
			"the broker cannot write to its disk: hub events, changes and commands are rejected",
			"make room, or see what the disk has (dmesg): the broker recovers by itself within seconds",
		)
	}
	free, ok := gauge(families, "hubcloud_broker_disk_free_bytes")
	if !ok {
		return
	}
	reserve, _ := gauge(families, "hubcloud_broker_disk_reserve_bytes")
	freeFiles, _ := gauge(families, "hubcloud_broker_disk_free_files")
	reserveFiles, _ := gauge(families, "hubcloud_broker_disk_reserve_files")
	low, _ := gauge(families, "hubcloud_broker_disk_low")
	switch {
	case low > 0 && free >= reserve && freeFiles < 2*reserveFiles:
		f.add(
			Wrong,
			fmt.Sprintf(
				"%.0f files (inodes) are free, and %.0f are the reserve: hub events, changes and commands are rejected",
				freeFiles, reserveFiles,
			),
			"remove files, not those of the service, or make the file system one with more "+
				"inodes (df -i): the service goes on by itself",
		)
		return
	case low > 0:
		f.add(
			Wrong,
			fmt.Sprintf(
				"%s are free, less than the reserve of %s: hub events, changes and commands are rejected",
				size(int64(free)), size(int64(reserve)),
			),
			"make room: the service goes on by itself; --disk-reserve is how much stays free",
		)
		return
	}
	f.note("the service's reserve is %s", size(int64(reserve)))
}

// places gives the disks under the data directory, each once.
func (p *patient) places() ([]place, error) {
	var all []place
	for _, folder := range []struct{ dir, what string }{
		{p.DataDir, "data directory"}, {p.path("nats"), "streams"},
		{p.path("postgres"), "database"},
	} {
		var disk syscall.Statfs_t
		if err := syscall.Statfs(folder.dir, &disk); err != nil {
			if os.IsNotExist(err) {
				continue // not made yet, or somebody else's
			}
			return nil, fmt.Errorf("free space of %s: %w", folder.dir, err)
		}
		known := false
		for i := range all {
			if all[i].free.Fsid == disk.Fsid && all[i].free.Blocks == disk.Blocks {
				all[i].what, known = append(all[i].what, folder.what), true
			}
		}
		if !known {
			all = append(all, place{dir: folder.dir, what: []string{folder.what}, free: disk})
		}
	}
	return all, nil
}

// judgePlace compares what is free with the limit, in bytes and in files.
func judgePlace(limits Limits, at place, f *findings) {
	what := fmt.Sprintf("%s (%s)", filepath.Clean(at.dir), strings.Join(at.what, ", "))
	free, all := int64(at.free.Bavail)*int64(at.free.Bsize), int64(at.free.Blocks)*int64(
		at.free.Bsize,
	) //nolint:unconvert // the types differ between systems
	if all == 0 {
		f.note("%s has no size", what) // a file system that has none of its own
		return
	}
	judgeFree(
		limits, f, 100*float64(free)/float64(all),
		fmt.Sprintf("%s has %s of %s free", what, size(free), size(all)),
	)
	if at.free.Files > 0 {
		if part := 100 * float64(at.free.Ffree) / float64(at.free.Files); part < 2*limits.DiskFree {
			judgeFree(
				limits, f, part, fmt.Sprintf("%s has room for %d more files", what, at.free.Ffree),
			)
		}
	}
}

func judgeFree(limits Limits, f *findings, part float64, found string) {
	found = fmt.Sprintf("%s (%.0f %%)", found, part)
	const advice = "make room, or move the data directory to a larger disk while the service is " +
		"stopped: a full disk ends all storing, and the database's too"
	switch {
	case part < limits.DiskFree:
		f.add(Wrong, found, advice)
	case part < 2*limits.DiskFree:
		f.add(Warning, found, advice)
	default:
		f.note("%s", found)
	}
}
