package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Write creates or replaces the file at path, with the permissions mode. The folder must exist.
func Write(path string, content []byte, mode fs.FileMode) (err error) {
	// CreateTemp uses mode 0600. The name's ending keeps others from reading half a file.
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err == nil {
		err = file.Chmod(mode)
	}
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return Sync(filepath.Dir(path))
}

// Sync writes the content of a file, or the names in a folder, to the disk.
func Sync(path string) error {
	opened, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(opened.Sync(), opened.Close())
}

// SyncTree syncs dir, its parent, and every file and folder below dir but those for which skip
// returns true; a skipped folder is skipped with its content. A nil skip skips nothing. Files that
// disappear meanwhile are no error.
func SyncTree(dir string, skip func(path string) bool) error {
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) && path != dir:
			return nil
		case err != nil:
			return err
		case skip != nil && skip(path):
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case !entry.IsDir() && !entry.Type().IsRegular():
			return nil
		}
		if err := Sync(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
	if err != nil {
		return err
	}
	return Sync(filepath.Dir(dir))
}

// GiveTree makes the user and group that own dir own everything below it, if root calls it: a
// service that runs as them could not use what root has written.
func GiveTree(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || os.Geteuid() != 0 {
		return nil
	}
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, int(owner.Uid), int(owner.Gid)))
	})
}
