package broker

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"hubcloud/streams"
	"hubcloud/streams/disk"
)

// SyncFolders syncs the folders of an account's streams. It must be called after a stream is
// created and before a message stored in it is acknowledged. The server syncs the files of a stream
// but not the folders that contain them, so a power cut could lose the new stream.
func (s *Server) SyncFolders(account streams.Account) error {
	folder := filepath.Join(s.storeOf(account), "jetstream", string(account), "streams")
	for ; len(folder) >= len(s.store); folder = filepath.Dir(folder) {
		// An account without a stream has no folder.
		if err := disk.Sync(folder); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("sync the streams of %s: %w", account, err)
		}
	}
	return nil
}

// durableFolder is the folder of the durable server's streams, in storeFolder.
const durableFolder = "durable"

// storeOf returns the folder of the server that has an account's streams.
func (s *Server) storeOf(account streams.Account) string {
	if account == streams.AccountCloud {
		return filepath.Join(s.store, durableFolder)
	}
	return s.store
}

// syncAllFolders calls SyncFolders for every account: the last run may have crashed between
// creating a stream and SyncFolders.
func (s *Server) syncAllFolders() error {
	for _, account := range s.credentials.Accounts() {
		if err := s.SyncFolders(account); err != nil {
			return err
		}
	}
	return nil
}
