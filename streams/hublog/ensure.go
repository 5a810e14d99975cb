package hublog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/domain"
	"hubcloud/streams"
)

// maxKnown bounds the hubs whose stream is remembered as ensured. When it is reached, all are
// forgotten.
const maxKnown = 1 << 17

// streamConfig returns the configuration of a hub's stream. It has a single subject because the
// broker compares the subjects of a new stream with all others of the account.
func (l *Logs) streamConfig(hub domain.HubID) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:      streams.HubStream(hub),
		Subjects:  []string{streams.LogFilter(hub)},
		Storage:   jetstream.FileStorage,
		Retention: jetstream.LimitsPolicy,
		Discard:   jetstream.DiscardOld,
		MaxAge:    l.cfg.Retention,
		Replicas:  l.cfg.Replicas,
		// Expected sequences prevent duplicates; message ids are not used.
		Duplicates: MinRetention,
		// History is read by direct gets, from any replica.
		AllowDirect: true,
		// Without deletes, sequences have no gaps: only expired messages at the front are missing.
		DenyDelete: true,
		// The events of one message of a hub are stored wholly or not at all.
		AllowAtomicPublish: true,
		RePublish: &jetstream.RePublish{
			Source:      streams.LogFilter(hub),
			Destination: streams.FeedDestination(hub),
		},
	}
}

// Ensure creates the hub's stream if it is missing, and updates a different retention. Any other
// difference is streams.ErrIncompatible. It asks the broker only once for each hub.
func (l *Logs) Ensure(ctx context.Context, hub domain.HubID) error {
	if l.isKnown(hub) {
		return nil
	}
	js := l.shard(hub).js
	want := l.streamConfig(hub)
	declared := want
	stream, err := js.Stream(ctx, want.Name)
	absent := errors.Is(err, jetstream.ErrStreamNotFound)
	switch {
	case err == nil:
		// A different retention is updated below.
		declared.MaxAge = stream.CachedInfo().Config.MaxAge
	case !absent:
		return fmt.Errorf("hub log of %s: %w", hub, err)
	}
	if stream, err = streams.Declare(ctx, js, declared); err != nil {
		return fmt.Errorf("hub log of %s: %w", hub, err)
	}
	// Another goroutine may have created the stream a moment ago and not synced its folder yet.
	if fresh := absent || stream.CachedInfo().Created.After(l.opened); fresh &&
		l.cfg.SyncFolders != nil {
		account := streams.ShardAccount(streams.ShardOf(hub, len(l.shards)))
		if err := l.cfg.SyncFolders(account); err != nil {
			return fmt.Errorf("hub log of %s: %w", hub, err)
		}
	}
	if got := stream.CachedInfo().Config; got.MaxAge != want.MaxAge {
		l.cfg.Logger.Info(
			"hub log retention changed", "hub_id", hub, "from", got.MaxAge, "to", want.MaxAge,
		)
		got.MaxAge = want.MaxAge
		got.Duplicates = want.Duplicates
		if _, err := js.UpdateStream(ctx, got); err != nil {
			return fmt.Errorf("hub log of %s: set the retention: %w", hub, err)
		}
	}
	l.knownMu.Lock()
	defer l.knownMu.Unlock()
	if len(l.known) >= maxKnown {
		clear(l.known)
	}
	l.known[hub] = struct{}{}
	return nil
}

func (l *Logs) isKnown(hub domain.HubID) bool {
	l.knownMu.Lock()
	defer l.knownMu.Unlock()
	_, ok := l.known[hub]
	return ok
}

func (l *Logs) forget(hub domain.HubID) {
	l.knownMu.Lock()
	defer l.knownMu.Unlock()
	delete(l.known, hub)
}

// correctRetention updates, in the background, a stream that was found with a different retention.
func (l *Logs) correctRetention(hub domain.HubID, found time.Duration) {
	if found == l.cfg.Retention || l.isKnown(hub) {
		return
	}
	l.work(func(ctx context.Context) {
		if err := l.Ensure(ctx, hub); err != nil {
			l.cfg.Logger.Warn(
				"hub log retention not changed", "hub_id", hub, "from", found, "error", err,
			)
		}
	})
}
