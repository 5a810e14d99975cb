package installation

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"hubcloud/streams/disk"
)

const (
	restoringFile = "RESTORING"
	restoringText = "A restore into this folder was begun and not finished: run it again " +
		"(hubcloud restore), or remove the folder.\n"
)

// keptByRestore are files that may exist in a directory that is restored into. A file system that
// is mounted as the data directory has lost+found.
var keptByRestore = []string{restoringFile, lockFile, "lost+found"}

// CheckRestored returns an error if a restore into the directory was not finished.
func (d Dir) CheckRestored() error {
	_, err := os.Stat(d.Path(restoringFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return fmt.Errorf(
		"a restore into %s was not finished: run `hubcloud restore` again, it begins from the "+
			"start",
		d,
	)
}

// BeginRestore locks an empty directory and marks it as being restored. It also accepts a
// directory that an interrupted restore left, and removes that restore's files. Any other directory
// is an error and stays untouched. The caller releases the lock.
func (d Dir) BeginRestore() (lock *disk.Lock, err error) {
	if err := d.checkEmpty(); err != nil {
		return nil, err
	}
	if lock, err = d.Lock(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = lock.Release()
		}
	}()
	// A service may have used the directory between the first check and the lock.
	if err := d.checkEmpty(); err != nil {
		return nil, err
	}
	if err := disk.Write(d.Path(restoringFile), []byte(restoringText), 0o644); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(string(d))
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if slices.Contains(keptByRestore, entry.Name()) {
			continue
		}
		if err := os.RemoveAll(d.Path(entry.Name())); err != nil {
			return nil, err
		}
	}
	return lock, nil
}

// FinishRestore makes the owner of the directory own its files, syncs it to disk and then removes the
// mark of the restore.
func (d Dir) FinishRestore() error {
	if err := disk.GiveTree(string(d)); err != nil {
		return err
	}
	if err := disk.SyncTree(string(d), nil); err != nil {
		return err
	}
	if err := os.Remove(d.Path(restoringFile)); err != nil {
		return err
	}
	return disk.Sync(string(d))
}

// checkEmpty returns an error unless the directory is empty or absent, or has an unfinished
// restore.
func (d Dir) checkEmpty() error {
	entries, err := os.ReadDir(string(d))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	restoring := func(e fs.DirEntry) bool { return e.Name() == restoringFile }
	if slices.ContainsFunc(entries, restoring) {
		return nil
	}
	for _, entry := range entries {
		if !slices.Contains(keptByRestore, entry.Name()) {
			return fmt.Errorf(
				"nothing was restored: %s is not empty (it has %s). If a service runs there, stop "+
					"it; then move the folder away and restore into a new one",
				d, entry.Name(),
			)
		}
	}
	return nil
}
