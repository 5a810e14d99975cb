package logwriter

import (
	"context"
	"fmt"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/hubviews"
	"hubcloud/streams/journal"
	"hubcloud/streams/jsapi"
)

// New returns a Router. The caller must call Open, and then Run. It panics if cfg.Metrics has the
// journals' metrics already.
func New(cfg Config) (*Router, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	journals, err := journal.New(journal.Config{
		Conn: cfg.Conns.Cloud, Groups: cfg.Groups, Replicas: cfg.Replicas,
		Retention: cfg.Retention + journal.Reserve, Logger: cfg.Logger, Metrics: cfg.Metrics,
	})
	if err != nil {
		return nil, err
	}
	r := &Router{cfg: cfg, journals: journals, viewMetrics: hubviews.NewMetrics(cfg.Metrics)}
	r.subscribers.Store(&[]func(int, []journal.Commit){})
	return r, nil
}

// Open creates the journals if they are missing, and reads where each hub's log ends. After an error
// it can be called again.
func (r *Router) Open(ctx context.Context) error {
	if err := r.journals.Declare(ctx); err != nil {
		return err
	}
	if r.cfg.SyncFolders != nil {
		if err := r.cfg.SyncFolders(streams.AccountCloud); err != nil {
			return fmt.Errorf("sync the folders of the journals: %w", err)
		}
	}
	var groups []*group
	for number := range r.cfg.Groups {
		index, err := r.journals.LoadIndex(ctx, number)
		if err != nil {
			return err
		}
		g := &group{number: number, index: index, reader: r.journals.NewReader(number)}
		g.follower = r.journals.NewFollower(
			number, index.Position()+1,
			func(commits []journal.Commit) { r.deliver(g, commits) },
			func(_, to uint64) { index.Skip(to) },
		)
		g.follower.OnLost(func(_, to uint64) { index.Lose(to) })
		groups = append(groups, g)
	}
	r.groups = groups
	return nil
}

// deliver adds commits to the index and passes them on to the subscribers.
func (r *Router) deliver(g *group, commits []journal.Commit) {
	if err := g.index.Apply(commits...); err != nil {
		// The follower delivers every commit or reports it as missing.
		panic(err)
	}
	for _, f := range *r.subscribers.Load() {
		f(g.number, commits)
	}
	if w := g.writer.Load(); w != nil && commits[len(commits)-1].Term > w.out.Term() {
		w.fence()
	}
}

// newViews returns the views of a group, which are written from the commits after those that the
// index has now.
func (r *Router) newViews(ctx context.Context, g *group, from uint64) (*hubviews.Views, error) {
	return hubviews.New(ctx, hubviews.Config{
		Conns: r.cfg.Conns, Group: g.number, Groups: r.cfg.Groups, From: from,
		Index: g.index, Reader: g.reader, Retention: r.cfg.Retention, Replicas: r.cfg.Replicas,
		Positions: jsapi.NewBucket(r.cfg.Conns.Cloud, streams.InstallationBucket),
		LogLostEnd: func(ctx context.Context, hub domain.HubID, kept uint64) error {
			return r.lostEnd(ctx, g, hub, kept)
		},
		ServerStarted: r.cfg.ServerStarted,
		SyncFolders:   r.cfg.SyncFolders, HasSubscribers: r.cfg.HasSubscribers,
		Now: r.cfg.Now, Logger: r.cfg.Logger, Metrics: r.viewMetrics,
	})
}

// lostEnd begins a new epoch of a log of which the journal has lost the end. Records of the former
// epoch are rejected from then on: whoever appends them does not know the new one yet.
func (r *Router) lostEnd(ctx context.Context, g *group, hub domain.HubID, kept uint64) error {
	if r.cfg.LogLostEnd == nil {
		return nil
	}
	ended, err := r.cfg.LogLostEnd(ctx, hub, kept)
	if err == nil && !ended.IsZero() {
		g.ended.Store(hub, ended)
	}
	return err
}
