package hubviews

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/domain"
	"hubcloud/streams"
)

// minDuplicates is the shortest window for message ids that the broker accepts. They are not used.
const minDuplicates = 100 * time.Millisecond

// streamConfig returns the configuration of a view whose first message gets the sequence first, with
// the default persist mode: the broker writes a message before it acknowledges it.
func streamConfig(
	hub domain.HubID, first uint64, retention time.Duration, replicas int,
) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: streams.HubStream(hub),
		// The broker compares the subjects of a new stream with all others of the account.
		Subjects:   []string{streams.LogFilter(hub)},
		Storage:    jetstream.FileStorage,
		Retention:  jetstream.LimitsPolicy,
		Discard:    jetstream.DiscardOld,
		MaxAge:     retention,
		Replicas:   replicas,
		Duplicates: minDuplicates,
		FirstSeq:   first,
		// History is read by direct gets, from any replica.
		AllowDirect: true,
		// Without deletes, sequences have no gaps: only expired messages at the front are missing.
		DenyDelete: true,
	}
}

// Recover declares the stream of a hub's log whose configuration the broker has lost, as on a
// damaged disk. The messages that the broker still has come back with it.
func Recover(
	ctx context.Context, nc *nats.Conn, hub domain.HubID, retention time.Duration,
) error {
	js, err := jetstream.New(nc)
	if err == nil {
		config := streamConfig(hub, 0, retention, 1)
		config.AllowMsgTTL = true // for what a repair has written
		_, err = js.CreateStream(ctx, config)
	}
	if err != nil {
		return fmt.Errorf("recover the stream of %s: %w", hub, err)
	}
	return nil
}

// open returns the information of a hub's stream, from its leader, and updates a configuration that
// differs: that of a log that was not a view, or that had another retention. Errors:
// jsapi.ErrNoStream; streams.ErrIncompatible; those of the broker.
func (s *shard) open(ctx context.Context, hub domain.HubID) (*jetstream.StreamInfo, error) {
	info, err := s.api.Info(ctx, streams.HubStream(hub))
	if err != nil {
		return nil, err
	}
	want := streamConfig(hub, 0, s.views.cfg.Retention, 1)
	got := info.Config
	if !slices.Equal(got.Subjects, want.Subjects) || got.Storage != want.Storage ||
		got.Retention != want.Retention {
		return nil, fmt.Errorf("%w: stream %s", streams.ErrIncompatible, want.Name)
	}
	changed := got
	changed.MaxAge, changed.Duplicates = want.MaxAge, want.Duplicates
	changed.AllowDirect, changed.DenyDelete = want.AllowDirect, want.DenyDelete
	changed.RePublish = nil
	if reflect.DeepEqual(got, changed) {
		return info, nil
	}
	s.views.step("update")
	ctx, cancel := context.WithTimeout(ctx, createTimeout)
	defer cancel()
	if _, err := s.js.UpdateStream(ctx, changed); err != nil {
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

// create creates the stream of a view with that many copies. The first message gets the sequence
// first. older reports that the stream is to have messages which the journal does not have.
func (s *shard) create(
	ctx context.Context, hub domain.HubID, first uint64, replicas int, older bool,
) error {
	s.views.step("create")
	config := streamConfig(hub, first, s.views.cfg.Retention, replicas)
	if replicas == 1 && !older && s.views.cfg.Conns.Clustered() {
		// The servers of a cluster sync each message of a stream before they acknowledge it, for the
		// journals. A view can do without, since the journal has what it loses.
		config.PersistMode = jetstream.AsyncPersistMode
	}
	ctx, cancel := context.WithTimeout(ctx, createTimeout)
	defer cancel()
	if _, err := s.js.CreateStream(ctx, config); err != nil {
		return fmt.Errorf("create stream %s: %w", config.Name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.created = true
	return nil
}
