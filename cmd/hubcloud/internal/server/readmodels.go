package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/identity"
	"hubcloud/hubbridge/presence"
	"hubcloud/projections/access"
	"hubcloud/projections/projector"
	"hubcloud/projections/readmodel"
	"hubcloud/projections/rebuild"
	"hubcloud/streams"
	"hubcloud/streams/book"
	"hubcloud/streams/directory"
	"hubcloud/streams/journal"
	"hubcloud/streams/replicas"
	"hubcloud/streams/signin"
)

// readModels is the layer of the directory and of what is read from it, in the database and in
// memory.
type readModels struct {
	*infrastructure
	replicaID    string
	directoryLog *directory.Log
	store        *readmodel.Store
	control      *rebuild.Control
	access       *access.Index
	presence     *presence.View
	disconnector *identity.Disconnector
	signIn       *signin.Store
	journals     *journal.Journal
	books        *book.Log
	barrier      *replicas.Barrier
	reach        *replicas.Reach
	freshness    *replicas.Freshness
}

// startReadModels opens the directory log, the journals and the read models, and starts the
// projector (role projector) and the index of keys and hubs. The index is complete when
// startReadModels returns; the read models in the database may still be built.
func (i *infrastructure) startReadModels(ctx context.Context) (_ *readModels, err error) {
	s := &readModels{infrastructure: i}
	if err := s.openReadModels(ctx); err != nil {
		return nil, err
	}
	s.atStop(closeConnections, s.store.Close)
	if err := s.openJournals(ctx); err != nil {
		return nil, err
	}
	if err := s.startProjector(); err != nil {
		return nil, err
	}
	if s.replicaID, err = s.dir.ReplicaID(); err != nil {
		return nil, err
	}
	s.barrier = replicas.NewBarrier(s.conns, s.barrierID(), s.logger)
	s.access = access.New(access.Config{
		Directory: s.directoryLog, Store: s.store, Logger: s.logger, Metrics: s.registry,
	})
	s.run(stopLoops, "access", s.access.Run)
	s.presence = presence.NewView(s.conns.Cloud, s.buckets.Presence, s.logger, s.registry)
	s.disconnector = identity.NewDisconnector(s.conns, s.logger, s.registry)
	s.atStop(stopDisconnector, s.disconnector.Close)
	s.signIn = signin.New(s.conns.Cloud, s.buckets.SignIn, s.logger)
	if err := s.waitForAccess(ctx); err != nil {
		return nil, fmt.Errorf("index of keys and hubs: %w", err)
	}
	s.waitForReadModels(ctx)
	s.health.add("read_models", s.checkReadModels)
	s.health.add("access", s.checkAccess)
	return s, s.startFreshness()
}

// openReadModels opens the directory log and the database.
func (s *readModels) openReadModels(ctx context.Context) error {
	err := s.retry(ctx, brokerStorage, func(ctx context.Context) (err error) {
		s.directoryLog, err = directory.Open(ctx, s.conns, s.cfg.LogReplicas)
		if errors.Is(err, directory.ErrGone) {
			return s.directoryGone(err)
		}
		if err != nil {
			return err
		}
		return s.checkDirectory(ctx)
	})
	if err != nil {
		return err
	}
	s.store, err = readmodel.Open(ctx, readmodel.Config{
		URL: s.postgresURL, InstallationID: s.settings.ID, Shares: s.shares, Logger: s.logger,
		Metrics: s.registry,
	})
	return err
}

// runClaimed runs a loop that writes to the database, once the store has claimed it.
func (s *readModels) runClaimed(name string, run func(ctx context.Context) error) {
	s.run(stopLoops, name, func(ctx context.Context) error {
		select {
		case <-s.store.Claimed():
			return run(ctx)
		case <-ctx.Done():
			return nil
		}
	})
}

// models are the read models. While the database is away, the names and rooms of devices come from
// the directory, so that hubs can be asked for their devices.
type models struct {
	*readmodel.Store
	directory *directory.Service
}

// DeviceLabels returns the labels of a hub's devices, by device id.
func (m models) DeviceLabels(
	ctx context.Context, org string, hub domain.HubID,
) (map[int64]domain.DeviceLabel, error) {
	labels, err := m.Store.DeviceLabels(ctx, org, hub)
	if domain.CodeOf(err) != domain.CodeServiceUnavailable {
		return labels, err
	}
	state, _, stateErr := m.directory.Hub(ctx, hub)
	if stateErr != nil || state.OrgID != org {
		return nil, err
	}
	return state.Labels, nil
}

// directoryGone adds to an error that wraps directory.ErrGone what to do.
func (s *readModels) directoryGone(err error) error {
	how := "create it again with `hubcloud restore --directory`, from a backup or another copy, or " +
		"without one (--accept-loss)"
	if s.cfg.NATSURL != "" {
		how = "stop the nats-servers, copy the stream's folder into their stores from an older copy, and " +
			"start them; or restore a whole backup into an empty broker"
	}
	return finalError{fmt.Errorf("%w: %s", err, how)}
}

// checkDirectory returns an error if events of the directory are lost: nobody can tell then who
// owns what, and whose key is revoked, so nothing may be decided.
func (s *readModels) checkDirectory(ctx context.Context) error {
	holes, err := s.directoryLog.Holes(ctx)
	if err != nil || len(holes) == 0 {
		return err
	}
	for _, h := range holes {
		s.logger.Error(
			"events of the directory are lost", "stream", streams.DirectoryStream,
			"lost", h.String(),
		)
	}
	how := "put them back with `hubcloud restore --directory`, from a backup or another server's copy, " +
		"or accept the loss (--accept-loss)"
	if s.conns.Clustered() {
		how = "stop the server that leads the stream, move the stream's folder away and start it: it " +
			"gets the stream from the others; if all copies are damaged, see `hubcloud restore --help`"
	}
	return finalError{fmt.Errorf(
		"%w (holes: %d): %s: %s", directory.ErrHoles, len(holes), holes[0], how,
	)}
}

// openJournals opens the journals of the hub logs, and the books that are written from them.
func (s *readModels) openJournals(ctx context.Context) (err error) {
	cfg := journal.Config{
		Conn: s.conns.Cloud, Shards: len(s.conns.Shards), Groups: s.settings.Journals,
		Retention: s.cfg.EventRetention, Replicas: s.cfg.LogReplicas, Logger: s.logger,
		Metrics: s.registry,
	}
	if s.broker != nil {
		cfg.Sole, cfg.SyncFolders = true, s.broker.SyncFolders
	}
	if s.journals, err = journal.New(cfg); err != nil {
		return err
	}
	return s.retry(ctx, brokerStorage, func(ctx context.Context) (err error) {
		if s.books, err = book.Open(ctx, s.conns.Cloud, s.cfg.LogReplicas); err != nil {
			return err
		}
		return s.journals.Open(ctx)
	})
}

// startProjector starts the projector on a replica with its role. On other replicas it only
// registers the projector's metrics.
func (s *readModels) startProjector() error {
	sources := projector.Sources{
		Directory: s.directoryLog, Presence: s.buckets.Presence, Journal: s.journals,
		Book: s.books,
	}
	var err error
	s.control, err = rebuild.New(rebuild.Config{
		Schema: s.store.Schema(), ConnConfig: s.store.ConnConfig(), Sources: sources,
		Logger: s.logger,
	})
	if err != nil {
		return err
	}
	p, err := projector.New(projector.Config{
		Database: s.store.ConnConfig(), Schema: s.store.Schema(), Sources: sources,
		Committed:   s.store.Position(),
		BuildTarget: s.store.SetBuildTarget, BuildFirst: s.control.Install, Shares: s.shares,
		Logger: s.logger, Metrics: s.registry, Tracer: s.traces.Tracer(),
	})
	if err != nil {
		return err
	}
	if s.cfg.has(roleProjector) {
		s.runClaimed("projector", p.Run)
	}
	return nil
}

// waitForAccess waits until the index of keys and hubs has applied the whole directory log. What
// the index has from read models of another directory, it has dropped by then.
func (s *readModels) waitForAccess(ctx context.Context) error {
	return s.retry(ctx, "the index of keys and hubs", func(ctx context.Context) error {
		select {
		case <-s.access.Loaded():
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}

// barrierID returns the id under which the other replicas wait for this one.
func (s *readModels) barrierID() string {
	if s.broker != nil {
		return replicas.Embedded
	}
	return s.replicaID
}

// startFreshness starts the three loops of package replicas, which together make a revoked key stop
// working at every replica.
func (s *readModels) startFreshness() (err error) {
	s.run(stopLoops, "barrier", func(ctx context.Context) error {
		return s.barrier.Serve(ctx, s.access.WaitFor)
	})
	s.reach = replicas.NewReach(s.logger, s.conns, s.reads)
	s.run(stopLoops, "reach", s.reach.Run)
	s.run(stopLoops, "evictor", identity.NewEvictor(s.conns, s.reach, s.logger).Run)
	s.freshness, err = replicas.NewFreshness(replicas.FreshnessConfig{
		Refresh: s.access.Refresh, Registered: s.barrier.Registered, CutOff: s.reach.CutOff,
		Clustered: s.conns.Clustered, Embedded: s.broker != nil, Logger: s.logger,
	})
	if err != nil {
		return err
	}
	s.run(stopLoops, "freshness", s.freshness.Run)
	return nil
}

// claimed reports whether the database has answered since the start.
func (s *readModels) claimed() bool {
	select {
	case <-s.store.Claimed():
		return true
	default:
		return false
	}
}

// firstBuildWait is how long a start waits for the first build of the read models. A longer build
// continues after the start, and /readyz shows its progress.
const firstBuildWait = 5 * time.Second

// waitForReadModels waits until the read models are complete, or for firstBuildWait. It does not
// wait for a database that is away.
func (s *readModels) waitForReadModels(ctx context.Context) {
	if !s.claimed() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, firstBuildWait)
	defer cancel()
	select {
	case <-s.store.Complete():
	case <-ctx.Done():
		s.logger.Warn(
			"read models are not complete: until then lists and single reads are answered 503",
			"schema", s.store.Schema(),
		)
	}
}
