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

// maxKnown bounds the hubs that are remembered to have their stream; beyond it they are all asked
// about again.
const maxKnown = 1 << 17

// streamConfig declares a hub's stream. It has one subject, since the broker compares the subjects
// of a new stream with all others of the account.
func (l *Logs) streamConfig(hub domain.HubID) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:      streams.HubStream(hub),
		Subjects:  []string{streams.LogFilter(hub)},
		Storage:   jetstream.FileStorage,
		Retention: jetstream.LimitsPolicy,
		Discard:   jetstream.DiscardOld,
		MaxAge:    l.cfg.Retention,
		Replicas:  l.cfg.Replicas,
		// Message ids are not used, the expected sequence takes their place.
		Duplicates: MinRetention,
		// History is read by direct gets, in a cluster from any replica.
		AllowDirect: true,
		// Sequences have no holes: what is missing at the front has expired, and nothing else is
		// ever missing.
		DenyDelete: true,
		// A hub's message is stored wholly or not at all.
		AllowAtomicPublish: true,
		RePublish: &jetstream.RePublish{
			Source:      streams.LogFilter(hub),
			Destination: streams.FeedDestination(hub),
		},
	}
}

// Ensure sees to it that the hub's stream is there: it makes one that is absent, and gives one of
// another retention the present one. Anything else that differs is streams.ErrIncompatible. It asks
// the broker once a hub; then it knows.
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
		// A retention of another length is no difference to refuse.
		declared.MaxAge = stream.CachedInfo().Config.MaxAge
	case !absent:
		return fmt.Errorf("hub log of %s: %w", hub, err)
	}
	if stream, err = streams.Declare(ctx, js, declared); err != nil {
		return fmt.Errorf("hub log of %s: %w", hub, err)
	}
	// Another goroutine may have made it a moment ago, and be about to sync its folder.
	if fresh := absent || stream.CachedInfo().Created.After(l.opened); fresh &&
		l.cfg.SyncFolders != nil {
		if err := l.cfg.SyncFolders(streams.ShardAccount(streams.ShardOf(hub, len(l.shards)))); err != nil {
			return fmt.Errorf("hub log of %s: %w", hub, err)
		}
	}
	if got := stream.CachedInfo().Config; got.MaxAge != want.MaxAge {
		l.cfg.Logger.Info(
			"hub log gets another retention", "hub_id", hub, "from", got.MaxAge, "to", want.MaxAge,
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

// correctRetention sees to a stream that was found with another retention than it should have.
func (l *Logs) correctRetention(hub domain.HubID, found time.Duration) {
	if found == l.cfg.Retention || l.isKnown(hub) {
		return
	}
	l.work(func(ctx context.Context) {
		if err := l.Ensure(ctx, hub); err != nil {
			l.cfg.Logger.Warn(
				"hub log keeps another retention than it should have", "hub_id", hub,
				"retention", found, "error", err,
			)
		}
	})
}
