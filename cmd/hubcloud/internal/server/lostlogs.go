package server

import (
	"context"
	"errors"
	"slices"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/ingest"
	"hubcloud/streams"
	"hubcloud/streams/hubviews"
)

const (
	// lostLogsTimeout bounds one comparison of the hub logs with the ingest checkpoints.
	lostLogsTimeout = time.Minute
	// lostLogsPause is the pause after a comparison that failed.
	lostLogsPause = 10 * time.Second
)

// recoverLogs recovers hub logs whose messages are on the embedded broker's disk but whose stream
// configuration could not be read. Declaring such a stream again brings its messages back. Streams
// that cannot be recovered are logged.
func (s *hubLink) recoverLogs(ctx context.Context) {
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
				"stream not recovered: its messages are on disk", "account", folder.Account,
				"stream", folder.Stream,
			)
			continue
		}
		shard := s.conns.Shards[streams.ShardOf(hub, len(s.conns.Shards))]
		if err := hubviews.Recover(ctx, shard, hub, s.cfg.EventRetention); err != nil {
			s.logger.Error(
				"hub log not recovered: its messages are on disk", "hub_id", hub,
				"account", folder.Account, "error", err,
			)
			continue
		}
		s.logger.Warn("hub log recovered: its configuration was unreadable", "hub_id", hub)
	}
}

// reportLostLogs logs, once, each hub that had a log and has none now. It returns when ctx ends.
func (s *hubLink) reportLostLogs(ctx context.Context) error {
	for {
		lost, err := s.lostLogs(ctx)
		if err == nil {
			message := "hub log lost: the hub gets an empty one when it connects"
			if s.broker == nil {
				message = "hub log lost: its messages may still be in the store of a " +
					"nats-server; remove nothing, stop that server, run `hubcloud broker-repair` " +
					"on its store, and start it"
			}
			for _, hub := range lost {
				s.logger.Error(message, "hub_id", hub)
			}
			<-ctx.Done()
			return ctx.Err()
		}
		if !errors.Is(err, context.Canceled) {
			s.logger.Warn("hub logs not compared with ingest checkpoints", "error", err)
		}
		if !streams.Sleep(ctx, lostLogsPause) {
			return ctx.Err()
		}
	}
}

// lostLogs returns the hubs that had a log of which neither a stream nor the journal is left. A
// stream alone is written again from the journal.
func (s *hubLink) lostLogs(ctx context.Context) ([]domain.HubID, error) {
	ctx, cancel := context.WithTimeout(ctx, lostLogsTimeout)
	defer cancel()
	lost, err := ingest.LostLogs(ctx, s.conns)
	if err != nil {
		return nil, err
	}
	for _, hub := range lost {
		// At the start the journal's newest commits may not have been read yet.
		if err := s.journals.Sync(ctx, hub); err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(lost, func(hub domain.HubID) bool {
		_, journaled := s.journals.Tip(hub)
		return journaled
	}), nil
}
