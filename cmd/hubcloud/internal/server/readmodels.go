package server

import (
	"context"
	"fmt"
	"time"

	"hubcloud/domain"
	"hubcloud/projections"
	"hubcloud/streams"
	"hubcloud/streams/directory"
)

// startReadModels opens the directory and the database's read models, brings both up with what was
// written before the start, and makes the write side, whose commands return once the read models
// have them.
func (s *Server) startReadModels(ctx context.Context) (err error) {
	err = s.retry(ctx, brokerStorage, func(ctx context.Context) (err error) {
		s.events, err = directory.Open(ctx, s.conns, s.cfg.LogReplicas)
		return err
	})
	if err != nil {
		return err
	}
	err = s.retry(ctx, "the database", func(ctx context.Context) (err error) {
		s.store, err = projections.Open(ctx, projections.StoreConfig{
			URL: s.postgresURL, InstallationID: s.settings.ID, Log: s.logger, Metrics: s.registry,
			Tracer: s.traces.Tracer(),
		})
		if err != nil {
			return finalError{err} // it waits for the database itself
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read models: %w", err)
	}
	if s.cfg.has(roleProjector) {
		s.foundation.run("projector", func(ctx context.Context) error {
			return s.store.RunProjector(ctx, s.events, s.buckets.Presence)
		})
	}
	s.access = projections.NewAccess(s.store, s.events, s.logger, s.registry)
	s.foundation.run("access", s.access.Run)

	id, err := s.dir.ReplicaID()
	if err != nil {
		return err
	}
	s.replicaID = id
	barrier := streams.NewBarrier(s.conns, id, s.logger)
	s.directory = directory.NewService(s.events, directory.ServiceConfig{
		Environment: s.settings.Environment, InvitationTTL: s.cfg.InvitationTTL, Now: time.Now,
		Settled: s.store.WaitFor, EverywhereApplied: barrier.Wait,
		Quotas: directory.Quotas{
			SitesPerOrg: s.cfg.SitesPerOrg, MembersPerOrg: s.cfg.MembersPerOrg,
			ChangesPerHour: s.cfg.ChangesPerOrg,
			KeysPerOrg:     s.cfg.KeysPerOrg, KeysOf: s.access.KeysOf,
			OrgsPerAccount: s.cfg.OrgsPerAccount, OwnedBy: s.access.OwnedBy,
			PendingInvitations: s.cfg.PendingInvitationsPerOrg,
			InvitationsPerHour: s.cfg.InvitationsPerOrg, MayInvite: s.mayInvite,
		},
		Admit: s.space.Admit,
		HubCertificates: domain.HubLimit{
			PerMinute: s.cfg.HubEnrolments,
			Burst:     s.cfg.HubEnrolmentBurst,
		},
		HubLogs: domain.HubLimit{
			PerMinute: s.cfg.HubResets,
			Burst:     s.cfg.HubResetBurst,
		},
		Metrics: s.registry, Tracer: s.traces.Tracer(),
	})
	err = s.retry(ctx, "the index of keys and hubs", func(ctx context.Context) error {
		head, err := s.events.Head(ctx, 0)
		if err != nil {
			return err
		}
		return s.access.WaitFor(ctx, head)
	})
	if err != nil {
		return fmt.Errorf("index of keys and hubs: %w", err)
	}
	s.awaitReadModels(ctx)
	s.foundation.run(
		"barrier", func(ctx context.Context) error { return barrier.Serve(ctx, s.access.WaitFor) },
	)
	s.reach = streams.NewReach(s.logger, s.conns, s.reads)
	s.foundation.run("reach", s.reach.Run)
	s.freshness = streams.NewFreshness(streams.FreshnessConfig{
		Refresh: s.access.Refresh, Registered: barrier.Registered, CutOff: s.reach.CutOff,
		Clustered: func() bool { return s.conns.Cloud.ConnectedClusterName() != "" }, Log: s.logger,
	})
	s.foundation.run("freshness", s.freshness.Run)
	return nil
}

// firstBuildWait is how long a start waits for read models that have never been complete. A longer
// one goes on behind it: /readyz says how far.
const firstBuildWait = 5 * time.Second

func (s *Server) awaitReadModels(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, firstBuildWait)
	defer cancel()
	select {
	case <-s.store.Complete():
	case <-ctx.Done():
		s.logger.Warn(
			"the read models are being built: until they are complete this process is not ready and answers no reads",
			"schema", s.store.Schema(),
		)
	}
}
