package certificate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/acme/autocert"

	"hubcloud/streams/durablefile"
)

// cache keeps an account's key, certificates and their keys as files, readable by their owner only.
// It implements autocert.Cache.
type cache struct{ dir string }

// path returns the path of an entry. A name is a domain, in part with a suffix such as +key.
func (c cache) path(name string) (string, error) {
	if name == "" || strings.ContainsAny(name, `/\`) || strings.HasPrefix(name, ".") {
		return "", fmt.Errorf("acme: %q cannot be a file's name", name)
	}
	return filepath.Join(c.dir, name), nil
}

// Get returns an entry. The error is autocert.ErrCacheMiss when there is none.
func (c cache) Get(_ context.Context, name string) ([]byte, error) {
	path, err := c.path(name)
	if err != nil {
		return nil, err
	}
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, autocert.ErrCacheMiss
	}
	return content, err
}

// Put stores an entry; it survives a power cut once Put has returned.
func (c cache) Put(_ context.Context, name string, content []byte) error {
	path, err := c.path(name)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return err
	}
	return durablefile.Write(path, content, 0o600)
}

// Delete removes an entry, if it exists.
func (c cache) Delete(_ context.Context, name string) error {
	path, err := c.path(name)
	if err != nil {
		return err
	}
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
