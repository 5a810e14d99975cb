package hublog

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
	// First and Last are its first and last sequence; First is Last+1 when it holds nothing. They
	// are 1 and 0 without a stream.
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
		LastStored: info.State.LastTime,
		Retention:  info.Config.MaxAge,
	}
}

// State asks the leader of a log's stream what it holds. The leader must confirm an end before the
// sequence seen, which the caller knows that the log had: a stale answer would have the caller take
// the log for another one.
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

// ErrIncomplete says that some of the logs have no leader at the moment that could say what they
// hold.
var ErrIncomplete = errors.New("some hub logs have no leader at the moment")

// List gives the hub logs of a shard and what each holds, calling found for each. One that is made
// meanwhile may be missing. ErrIncomplete comes after all those that could be had.
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
