package views

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/domain"
	"hubcloud/streams"
)

// minDuplicates is the shortest window for message ids that the broker accepts. They are not used.
const minDuplicates = 100 * time.Millisecond

// streamConfig returns the configuration of a view whose first message gets the sequence first, or
// 1 for 0, which stands for a view that is not written again, with the default persist mode: the
// broker writes a message before it acknowledges it.
func streamConfig(
	hub domain.HubID, first uint64, retention time.Duration,
) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: streams.HubStream(hub),
		// The broker compares the subjects of a new stream with all others of the account.
		Subjects:   []string{streams.LogFilter(hub)},
		Storage:    jetstream.FileStorage,
		Retention:  jetstream.LimitsPolicy,
		Discard:    jetstream.DiscardOld,
		MaxAge:     retention,
		Replicas:   1,
		Duplicates: minDuplicates,
		FirstSeq:   first,
		// History is read by direct gets, from any replica.
		AllowDirect: true,
		// Without deletes, sequences have no gaps: only expired messages at the front are missing.
		DenyDelete: true,
	}
}

// open returns the information of a hub's stream, from its leader, and updates another retention.
// Errors: jsapi.ErrNoStream; streams.ErrIncompatible; the broker's.
func (s *shard) open(ctx context.Context, hub domain.HubID) (*jetstream.StreamInfo, error) {
	info, err := s.api.Info(ctx, streams.HubStream(hub))
	if err != nil {
		return nil, err
	}
	want := streamConfig(hub, 0, s.group.cfg.Retention)
	got := info.Config
	if !slices.Equal(got.Subjects, want.Subjects) || got.Storage != want.Storage ||
		got.Retention != want.Retention {
		return nil, fmt.Errorf("%w: stream %s", streams.ErrIncompatible, want.Name)
	}
	if got.MaxAge == want.MaxAge {
		return info, nil
	}
	got.MaxAge, got.Duplicates = want.MaxAge, want.Duplicates
	s.group.step("update")
	ctx, cancel := context.WithTimeout(ctx, createTimeout)
	defer cancel()
	if _, err := s.js.UpdateStream(ctx, got); err != nil {
		return nil, fmt.Errorf("update stream %s: %w", want.Name, err)
	}
	return info, nil
}

// allowTTL makes the stream of a view accept messages with a lifetime of their own, which only
// repairs write. For each stream that accepts them the broker takes 32 KB of memory.
func (s *shard) allowTTL(ctx context.Context, hub domain.HubID) error {
	info, err := s.api.Info(ctx, streams.HubStream(hub))
	if err != nil || info.Config.AllowMsgTTL {
		return err
	}
	config := info.Config
	config.AllowMsgTTL = true
	ctx, cancel := context.WithTimeout(ctx, createTimeout)
	defer cancel()
	if _, err := s.js.UpdateStream(ctx, config); err != nil {
		return fmt.Errorf("update stream %s: %w", config.Name, err)
	}
	return nil
}

// create creates the stream of a view. The first message gets the sequence first.
func (s *shard) create(ctx context.Context, hub domain.HubID, first uint64) error {
	s.group.step("create")
	config := streamConfig(hub, first, s.group.cfg.Retention)
	if s.group.cfg.Conns.Clustered() {
		// The servers of a cluster sync each message of a stream before they acknowledge it, for
		// the journals. A view can do without, since the journal has what it loses.
		config.PersistMode = jetstream.AsyncPersistMode
	}
	ctx, cancel := context.WithTimeout(ctx, createTimeout)
	defer cancel()
	if _, err := s.js.CreateStream(ctx, config); err != nil {
		return fmt.Errorf("create stream %s: %w", config.Name, err)
	}
	return nil
}
