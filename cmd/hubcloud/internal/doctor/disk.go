package doctor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// volume is a file system with what the installation keeps on it.
type volume struct {
	dir  string
	what []string
	free syscall.Statfs_t
}

// checkDisk checks the free space of the disks with the data directory, the broker's streams and
// the database.
func checkDisk(_ context.Context, t *target, f *findings) {
	if t.DataDir == "" {
		f.skip(
			"no data directory is known here: the disks of broker and database are on other " +
				"machines",
		)
		return
	}
	volumes, err := t.volumes()
	if err != nil {
		f.unclear("%v", err).todo("check whether the disk is mounted (df)")
		return
	}
	for _, v := range volumes {
		judgeVolume(t.Limits, v, f)
	}
	if len(volumes) == 0 {
		f.skip("there is no data directory %s", t.DataDir)
	}
}

// volumes returns the file systems of the data directory, each once.
func (t *target) volumes() ([]volume, error) {
	var all []volume
	for _, folder := range []struct{ dir, what string }{
		{t.DataDir, "data directory"}, {t.path("nats"), "streams"},
		{t.path("postgres"), "database"},
	} {
		var disk syscall.Statfs_t
		if err := syscall.Statfs(folder.dir, &disk); err != nil {
			if os.IsNotExist(err) {
				continue // not created yet, or on another machine
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
			all = append(all, volume{dir: folder.dir, what: []string{folder.what}, free: disk})
		}
	}
	return all, nil
}

// judgeVolume compares the free bytes and inodes with the limit.
func judgeVolume(limits Limits, v volume, f *findings) {
	what := fmt.Sprintf("%s (%s)", filepath.Clean(v.dir), strings.Join(v.what, ", "))
	block := int64(v.free.Bsize) //nolint:unconvert // the type differs between systems
	free, all := int64(v.free.Bavail)*block, int64(v.free.Blocks)*block
	if all == 0 {
		f.note("%s has no size", what) // a virtual file system
		return
	}
	judgeFree(
		limits, f, 100*float64(free)/float64(all),
		fmt.Sprintf("%s has %s of %s free", what, Size(free), Size(all)),
	)
	if v.free.Files > 0 {
		if part := 100 * float64(v.free.Ffree) / float64(v.free.Files); part < 2*limits.DiskFree {
			judgeFree(limits, f, part, fmt.Sprintf("%s has %d free inodes", what, v.free.Ffree))
		}
	}
}

// judgeFree compares the free part, in percent, with the limit.
func judgeFree(limits Limits, f *findings, part float64, found string) {
	f.grade(
		verdictOf(part < limits.DiskFree, part < 2*limits.DiskFree),
		"free space, or stop the service and move the data directory to a larger disk: on a full "+
			"disk neither broker nor database can store",
		"%s (%.0f %%)", found, part,
	)
}
