package server

import (
	"context"
	"errors"
	"time"

	"hubcloud/hubbridge/ingest"
)

const (
	// lostLogsTimeout bounds one look for hub logs that are missing, and lostLogsPause is the pause
	// after one that failed.
	lostLogsTimeout = time.Minute
	lostLogsPause   = 10 * time.Second
)

// recoverLogs declares the hub logs anew of which the broker has messages on disk and no stream,
// because their configuration could not be read: that brings the messages back. Whatever else is
// missing is named in the log.
func (s *Server) recoverLogs(ctx context.Context) {
	if s.broker == nil {
		return
	}
	folders, err := s.broker.NotRecovered()
	if err != nil {
		s.logger.Warn("streams on disk not compared with those of the broker", "error", err)
		return
	}
	for _, folder := range folders {
		hub, ok := folder.Hub()
		if !ok {
			s.logger.Error(
				"stream not recovered: the disk holds messages of it", "account", folder.Account,
				"stream", folder.Stream,
			)
			continue
		}
		if err := s.logs.Ensure(ctx, hub); err != nil {
			s.logger.Error(
				"hub log not recovered: the disk holds messages of it", "hub_id", hub,
				"account", folder.Account, "error", err,
			)
			continue
		}
		s.logger.Warn("hub log recovered: its configuration was unreadable", "hub_id", hub)
	}
}

// reportLostLogs names the hubs whose log is gone, once, and returns when ctx ends.
func (s *Server) reportLostLogs(ctx context.Context) error {
	for {
		asking, cancel := context.WithTimeout(ctx, lostLogsTimeout)
		lost, err := ingest.LostLogs(asking, s.conns)
		cancel()
		if err == nil {
			about := "hub log lost: the broker has none for a hub that had one; it gets an empty one when it connects"
			if s.broker == nil {
				about = "hub log lost: the broker has none for a hub that had one; its messages " +
					"may still be in the store of a nats-server: " +
					"remove nothing, stop that server, run `hubcloud broker-repair` on its store, and start it"
			}
			for _, hub := range lost {
				s.logger.Error(about, "hub_id", hub)
			}
			<-ctx.Done()
			return ctx.Err()
		}
		if !errors.Is(err, context.Canceled) {
			s.logger.Warn("hub logs not compared with what was stored", "error", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lostLogsPause):
		}
	}
}
