package main

import (
	"context"
	"fmt"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge"
	"hubcloud/hubbridge/identity"
	"hubcloud/hubbridge/presence"
	"hubcloud/streams/hublog"
)

// readyPause is how often a start looks whether the bridge is ready.
const readyPause = 5 * time.Millisecond

// startHubLink opens the hub logs and, on a replica that is a bridge, looks after hubs. The broker lets hubs in once the callout is
// answered, which comes last: what they send finds everything in place.
func (s *service) startHubLink(ctx context.Context) (err error) {
	s.logs, err = hublog.New(s.conns, hublog.Config{
		Retention: s.flags.EventRetention, Replicas: s.flags.LogReplicas, Reads: s.reads, Incarnation: s.incarnation,
		CacheBytes: s.flags.HistoryCache << 20, RingBytes: s.flags.LiveCache << 20, Log: s.log, Metrics: s.registry,
	})
	if err != nil {
		return err
	}
	s.foundation.run("hub logs", s.logs.Run)
	s.presence = presence.NewView(s.conns.Cloud, s.buckets.Presence, s.log)
	s.foundation.run("presence", s.presence.Run)
	s.kicks = identity.NewKicker(s.conns, s.directory, s.log)

	if s.flags.has(roleBridge) {
		s.bridge = hubbridge.New(s.conns, s.buckets, s.logs, s.directory, s.access, s.presence, hubbridge.Config{
			ReplicaID: s.replicaID, Retention: s.flags.EventRetention, Log: s.log, Metrics: s.registry,
		})
		s.bridging.run("bridge", s.bridge.Run)
		if err := s.awaitBridge(ctx); err != nil {
			return err
		}
	}
	callout, err := identity.NewCallout(identity.CalloutConfig{
		Conns: s.conns, Credentials: s.credentials, Directory: s.directory, Log: s.log, Metrics: s.registry,
	})
	if err != nil {
		return err
	}
	s.foundation.run("callout", callout.Run)
	return nil
}

// awaitBridge waits until the bridge looks after its shards.
func (s *service) awaitBridge(ctx context.Context) error {
	ticker := time.NewTicker(readyPause)
	defer ticker.Stop()
	for {
		missing := s.bridge.Ready()
		if missing == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), missing)
		case err := <-s.failed:
			return err
		case <-ticker.C:
		}
	}
}

// incarnation tells which of a stream's events are a hub's log now.
func (s *service) incarnation(hub domain.HubID) (hublog.Incarnation, bool) {
	access, ok := s.access.Hub(hub)
	return hublog.Incarnation{Tag: access.Incarnation, After: access.LogAfter}, ok
}
