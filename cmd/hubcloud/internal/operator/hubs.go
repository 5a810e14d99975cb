package operator

import (
	"context"
	"log/slog"

	"hubcloud/domain"
	"hubcloud/projections/rebuild"
	"hubcloud/streams"
	"hubcloud/streams/directory"
	"hubcloud/streams/feed"
	"hubcloud/streams/logwriter"
)

// WaitForReadModels makes the session's changes wait until the read models show them. Stopped
// projections do not delay a change.
func (s *Session) WaitForReadModels(models *rebuild.Control) {
	s.cfg.AwaitReadModels = models.WaitFor
	s.Directory = directory.NewService(s.Log, s.cfg)
}

// hubLogs reads the streams of hub logs for the directory, without serving them.
type hubLogs struct {
	conns *streams.Conns
	// journals is the number of journals of the installation.
	journals int
}

// LastSequence returns the last sequence of the hub's log.
func (h hubLogs) LastSequence(ctx context.Context, hub domain.HubID) (uint64, error) {
	if err := logwriter.FlushViews(ctx, h.conns.Cloud, h.journals); err != nil {
		return 0, err
	}
	logs, err := feed.New(h.conns, feed.Config{
		Retention: feed.MinRetention,
		Epoch:     func(domain.HubID) (domain.Epoch, bool) { return domain.Epoch{}, false },
		Logger:    slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return 0, err
	}
	defer logs.Close()
	return logs.LastSequence(ctx, hub)
}
