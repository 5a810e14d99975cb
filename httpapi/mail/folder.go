package mail

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	gomail "github.com/wneessen/go-mail"
)

// Folder is a Transport that writes each mail into a file of its own, `<name>.eml`, for
// installations without a mail server.
type Folder struct{ dir string }

// NewFolder makes the folder if it is absent. Only its owner may look into it: the mails hold links
// that are secrets.
func NewFolder(dir string) (*Folder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("folder for mails: %w", err)
	}
	return &Folder{dir}, nil
}

// Plain says that a file holds any byte.
func (f *Folder) Plain() bool { return true }

// Send writes one file, wholly or not at all, also over a power cut. A file of that name is the
// same mail, and replaced.
func (f *Folder) Send(_ context.Context, name string, m *gomail.Msg) (err error) {
	var text bytes.Buffer
	if _, err := m.WriteTo(&text); err != nil {
		return fmt.Errorf("%w: write it: %w", ErrRefused, err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w: %w", ErrUnreachable, err)
		}
	}()
	// CreateTemp makes the file 0600. Its name does not end in .eml: nobody takes half a mail for
	// one.
	file, err := os.CreateTemp(f.dir, "."+name+".*.tmp")
	if err != nil {
		return err
	}
	_, err = file.Write(text.Bytes())
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), filepath.Join(f.dir, name+".eml"))
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	folder, err := os.Open(f.dir)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
