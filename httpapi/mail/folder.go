package mail

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	gomail "github.com/wneessen/go-mail"

	"hubcloud/streams/disk"
)

// Folder is a Transport that writes each mail into a file `<name>.eml`, for installations without a
// mail server.
type Folder struct{ dir string }

// NewFolder returns a transport to a folder, and creates the folder if it is missing. Only its
// owner may read it: the mails contain links that are secrets.
func NewFolder(dir string) (*Folder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("folder for mails: %w", err)
	}
	return &Folder{dir}, nil
}

// Plain returns true: a file may contain any byte.
func (f *Folder) Plain() bool { return true }

// Send writes one file, which survives a power cut. It replaces a file of the same name: that is
// the same mail.
func (f *Folder) Send(_ context.Context, name string, m *gomail.Msg) error {
	var text bytes.Buffer
	if _, err := m.WriteTo(&text); err != nil {
		return fmt.Errorf("%w: write it: %w", ErrRejected, err)
	}
	err := disk.Write(filepath.Join(f.dir, name+".eml"), text.Bytes(), 0o600)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return nil
}
