package main

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
func (s *service) startReadModels(ctx context.Context) (err error) {
	err = s.await(ctx, brokerStorage, func(ctx context.Context) (err error) {
		s.events, err = directory.Open(ctx, s.conns, s.flags.LogReplicas)
		return err
	})
	if err != nil {
		return err
	}
	err = s.await(ctx, "the database", func(ctx context.Context) (err error) {
		s.store, err = projections.Open(ctx, projections.StoreConfig{
			URL: s.postgresURL, InstallationID: s.settings.ID, Log: s.log, Metrics: s.registry,
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
	if s.flags.has(roleProjector) {
		s.foundation.run("projector", func(ctx context.Context) error {
			return s.store.RunProjector(ctx, s.events, s.buckets.Presence)
		})
	}
	s.access = projections.NewAccess(s.store, s.events, s.log, s.registry)
	s.foundation.run("access", s.access.Run)

	id, err := s.dir.replicaID()
	if err != nil {
		return err
	}
	s.replicaID = id
	barrier := streams.NewBarrier(s.conns, id, s.log)
	s.directory = directory.NewService(s.events, directory.ServiceConfig{
		Environment: s.settings.Environment, InvitationTTL: s.flags.InvitationTTL, Now: time.Now,
		Settled: s.store.WaitFor, EverywhereApplied: barrier.Wait,
		Quotas: directory.Quotas{
			SitesPerOrg: s.flags.SitesPerOrg, MembersPerOrg: s.flags.MembersPerOrg,
			ChangesPerHour: s.flags.ChangesPerOrg,
			KeysPerOrg:     s.flags.KeysPerOrg, KeysOf: s.access.KeysOf,
			OrgsPerAccount: s.flags.OrgsPerAccount, OwnedBy: s.access.OwnedBy,
			PendingInvitations: s.flags.PendingInvitationsPerOrg,
			InvitationsPerHour: s.flags.InvitationsPerOrg, MayInvite: s.mayInvite,
		},
		Admit: s.space.Admit,
		HubCertificates: domain.HubLimit{
			PerMinute: s.flags.HubEnrolments,
			Burst:     s.flags.HubEnrolmentBurst,
		},
		HubLogs: domain.HubLimit{
			PerMinute: s.flags.HubResets,
			Burst:     s.flags.HubResetBurst,
		},
		Metrics: s.registry, Tracer: s.traces.Tracer(),
	})
	err = s.await(ctx, "the index of keys and hubs", func(ctx context.Context) error {
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
	s.reach = streams.NewReach(s.log, s.conns, s.reads)
	s.foundation.run("reach", s.reach.Run)
	s.freshness = streams.NewFreshness(streams.FreshnessConfig{
		Refresh: s.access.Refresh, Registered: barrier.Registered, CutOff: s.reach.CutOff,
		Clustered: func() bool { return s.conns.Cloud.ConnectedClusterName() != "" }, Log: s.log,
	})
	s.foundation.run("freshness", s.freshness.Run)
	return nil
}

// firstBuildWait is how long a start waits for read models that have never been complete. A longer
// one goes on behind it: /readyz says how far.
const firstBuildWait = 5 * time.Second

func (s *service) awaitReadModels(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, firstBuildWait)
	defer cancel()
	select {
	case <-s.store.Complete():
	case <-ctx.Done():
		s.log.Warn(
			"the read models are being built: until they are complete this process is not ready and answers no reads",
			"schema", s.store.Schema(),
		)
	}
}
