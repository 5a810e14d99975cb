package broker

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"hubcloud/streams"
	"hubcloud/streams/durablefile"
)

// SyncFolders syncs the folders that hold the streams of an account. It must be called after a
// stream was made and before anything stored in it is acknowledged: the server syncs the files of a
// stream, but not the names of the folders that they are in, and with those a power cut would take
// the stream.
func (s *Server) SyncFolders(account streams.Account) error {
	folder := filepath.Join(s.store, "jetstream", string(account), "streams")
	for ; len(folder) >= len(s.store); folder = filepath.Dir(folder) {
		// An account without a stream has no folder.
		if err := durablefile.Sync(folder); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("sync the streams of %s: %w", account, err)
		}
	}
	return nil
}

// syncAllFolders does the same for every account: a crash may have come between the making of a
// stream and SyncFolders.
func (s *Server) syncAllFolders() error {
	for _, account := range s.credentials.Accounts() {
		if err := s.SyncFolders(account); err != nil {
			return err
		}
	}
	return nil
}
