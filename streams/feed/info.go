package feed

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

// State is what the stream of a hub's log holds.
type State struct {
	// First and Last are its first and last sequence; First is Last+1 for an empty stream. They are
	// 1 and 0 without a stream.
	First, Last uint64
	// LastStored is when the last message was stored.
	LastStored time.Time
	// Retention is how long messages are kept; 0 without a stream.
	Retention time.Duration
}

func stateOf(info *jetstream.StreamInfo) State {
	b := boundsOf(info)
	return State{
		First:      b.first,
		Last:       b.last,
		LastStored: b.lastStored,
		Retention:  info.Config.MaxAge,
	}
}

// State returns the state of a hub's stream, from its leader. seen is a sequence that the caller
// knows the stream had: the leader must confirm an end before it, since a stale answer would make
// the stream look like a new one.
func (s *Source) State(ctx context.Context, hub domain.HubID, seen uint64) (State, error) {
	shard := streams.ShardOf(hub, s.shards)
	info, err := s.api(shard).ConfirmedInfo(ctx, streams.HubStream(hub), seen)
	if errors.Is(err, jsapi.ErrNoStream) {
		return State{First: 1}, nil
	}
	if err != nil {
		return State{}, fmt.Errorf("hub log of %s: %w", hub, err)
	}
	return stateOf(info), nil
}

// ErrIncomplete means that List left out logs whose streams have no leader at the moment.
var ErrIncomplete = errors.New("some hub logs have no leader at the moment")

// List calls found for each hub log of a shard, with the state of its stream. A log that is created
// meanwhile may be missing. It returns ErrIncomplete after all logs that have a leader.
func (s *Source) List(ctx context.Context, shard int, found func(domain.HubID, State)) error {
	leaderless := map[string]bool{}
	missing, err := s.api(shard).List(ctx, func(page []jetstream.StreamInfo) (more bool) {
		for i := range page {
			info := &page[i]
			if jsapi.CheckLeader(info) != nil {
				leaderless[info.Config.Name] = true // what a follower has may be old
				continue
			}
			name, ok := strings.CutPrefix(info.Config.Name, streams.HubStream(""))
			if hub, valid := domain.ParseHubID(name); ok && valid {
				found(hub, stateOf(info))
			}
		}
		return true
	})
	if err != nil {
		return fmt.Errorf("list the hub logs of shard %d: %w", shard, err)
	}
	for _, name := range missing {
		leaderless[name] = true
	}
	if len(leaderless) > 0 {
		return fmt.Errorf(
			"list the hub logs of shard %d: %w (%d)", shard, ErrIncomplete, len(leaderless),
		)
	}
	return nil
}
