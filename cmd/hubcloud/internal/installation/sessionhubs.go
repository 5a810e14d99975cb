package installation

import (
	"context"
	"log/slog"

	"hubcloud/domain"
	"hubcloud/projections/rebuild"
	"hubcloud/streams"
	"hubcloud/streams/directory"
	"hubcloud/streams/feed"
	"hubcloud/streams/journal"
)

// WaitForReadModels makes the session's changes wait until the read models show them. Stopped
// projections do not delay a change.
func (s *Session) WaitForReadModels(models *rebuild.Control) {
	s.cfg.AwaitReadModels = models.WaitFor
	s.Directory = directory.NewService(s.Log, s.cfg)
}

// hubLogs reads the journals for the directory, without serving them.
type hubLogs struct {
	conns *streams.Conns
	// journals is the number of journals of the installation.
	journals int
}

// LastSequence returns the last sequence of the hub's log.
func (h hubLogs) LastSequence(ctx context.Context, hub domain.HubID) (uint64, error) {
	journals, err := openJournals(h.conns, h.journals)
	if err != nil {
		return 0, err
	}
	group := journal.GroupOf(streams.ShardOf(hub, len(h.conns.Shards)), h.journals)
	index, err := journals.ReadIndex(ctx, group)
	if err != nil {
		return 0, err
	}
	tip, _ := index.Tip(hub)
	return tip.Seq, nil
}

// openJournals returns a number of journals for reading.
func openJournals(conns *streams.Conns, groups int) (*journal.Journal, error) {
	return journal.New(journal.Config{
		Conn: conns.Cloud, Groups: groups, Retention: feed.MinRetention, // nothing is declared
		Logger: slog.New(slog.DiscardHandler),
	})
}
