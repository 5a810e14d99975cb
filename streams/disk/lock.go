package disk

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// ErrInUse reports that another process, or this one, has locked the file.
var ErrInUse = errors.New("in use by another process")

// Lock is a locked file.
type Lock struct{ file *os.File }

// AcquireLock creates the file at path if needed and locks it without waiting. The error is ErrInUse if
// the file is locked already.
func AcquireLock(path string) (*Lock, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock file: %w", err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return &Lock{file: file}, nil
	}
	_ = file.Close() // nothing was written
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, ErrInUse
	}
	return nil, fmt.Errorf("lock %s: %w", path, err)
}

// Release ends the lock and leaves the file in place.
//
// Closing the file is not enough: a child process that has been forked and not yet started its
// program still has the file open, and the lock with it.
func (l *Lock) Release() error {
	unlock := syscall.Flock(int(l.file.Fd()), syscall.LOCK_UN)
	return errors.Join(unlock, l.file.Close())
}
