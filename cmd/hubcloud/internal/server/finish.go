package server

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"hubcloud/cmd/hubcloud/internal/installation"
	"hubcloud/streams"
	"hubcloud/streams/disk"
)

// finishStart syncs what the start created to disk, writes endpoints.json and reports the server as
// ready, in this order: no client learns of an installation that a power cut could still undo.
// While the disk is full, finishStart waits. ctx ends when the server is to stop.
func (s *process) finishStart(ctx context.Context) error {
	for _, write := range s.postponed {
		if err := s.writeWhenSpace(ctx, write); err != nil {
			return err
		}
	}
	if err := s.writeWhenSpace(ctx, s.syncInstallation); err != nil {
		return fmt.Errorf("sync the data directory: %w", err)
	}
	err := s.writeWhenSpace(ctx, func() error { return s.dir.WriteEndpoints(s.bound) })
	if err != nil {
		return fmt.Errorf("write %s: %w", installation.EndpointsFile, err)
	}
	s.health.started.Store(true)
	return nil
}

// syncInstallation syncs streams, buckets, settings and the authority, with their directory
// entries. With --sync 2m the broker would sync them later. The database syncs itself; hub logs are
// created later.
func (s *process) syncInstallation() error {
	return disk.SyncTree(string(s.dir), func(path string) (skip bool) {
		return path == s.dir.Path("postgres") ||
			strings.HasPrefix(filepath.Base(path), streams.HubStream(""))
	})
}
