package server

import (
	"context"
	"os"
	"path/filepath"

	"golang.org/x/crypto/acme/autocert"

	"hubcloud/streams/disk"
)

// acmeCache keeps an account's key, certificates and their keys as files, readable by their owner
// only. The manager fails for ever on an account's key that a power cut has left empty, so that an
// entry is on the disk once Put has returned.
type acmeCache struct{ autocert.DirCache }

// Put stores an entry.
func (c acmeCache) Put(_ context.Context, name string, content []byte) error {
	if err := os.MkdirAll(string(c.DirCache), 0o700); err != nil {
		return err
	}
	// No name leads out of the folder, as for the other methods.
	path := filepath.Join(string(c.DirCache), filepath.Clean("/"+name))
	return disk.Write(path, content, 0o600)
}
