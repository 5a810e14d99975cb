package hublog

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"hubcloud/domain"
	"hubcloud/streams"
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

func stateOf(s *streams.StreamState) State {
	b := boundsOf(s)
	return State{
		First:      b.first,
		Last:       b.last,
		LastStored: s.State.LastStored,
		Retention:  s.Config.MaxAge,
	}
}

// State asks the leader of a log's stream what it holds. The leader must confirm an end before the
// sequence seen, which the caller knows that the log had: a stale answer would have the caller take
// the log for another one.
func (s *Source) State(ctx context.Context, hub domain.HubID, seen uint64) (State, error) {
	state, err := streams.AskLast(ctx, s.lanes.nc, s.api(hub), streams.HubStream(hub), seen)
	if errors.Is(err, streams.ErrNoStream) {
		return State{First: 1}, nil
	}
	if err != nil {
		return State{}, fmt.Errorf("hub log of %s: %w", hub, err)
	}
	return stateOf(state), nil
}

// ErrIncomplete says that some of the logs have no leader at the moment that could say what they
// hold.
var ErrIncomplete = errors.New("some hub logs have no leader at the moment")

// List gives the hub logs of a shard and what each holds, calling found for each. One that is made
// meanwhile may be missing. ErrIncomplete comes after all those that could be had.
func (s *Source) List(ctx context.Context, shard int, found func(domain.HubID, State)) error {
	missing := map[string]bool{}
	prefix := streams.HubStream("")
	for offset := 0; ; {
		var answer struct {
			Total   int                   `json:"total"`
			Limit   int                   `json:"limit"`
			Streams []streams.StreamState `json:"streams"`
			Missing []string              `json:"missing"`
			Error   *streams.BrokerError  `json:"error"`
		}
		request := append(strconv.AppendInt([]byte(`{"offset":`), int64(offset), 10), '}')
		if err := ask(ctx, s.lanes.nc, streams.ShardAPI(shard)+".STREAM.LIST", request, &answer); err != nil {
			return fmt.Errorf("list the hub logs of shard %d: %w", shard, err)
		}
		if answer.Error != nil {
			return fmt.Errorf("list the hub logs of shard %d: %w", shard, answer.Error)
		}
		for i := range answer.Streams {
			if answer.Streams[i].CheckLeader() != nil {
				// A follower answered for want of a leader, or nobody did: what stands there may be
				// old or empty.
				missing[answer.Streams[i].Config.Name] = true
				continue
			}
			name, ok := strings.CutPrefix(answer.Streams[i].Config.Name, prefix)
			if hub, valid := domain.ParseHubID(name); ok && valid {
				found(hub, stateOf(&answer.Streams[i]))
			}
		}
		for _, name := range answer.Missing {
			missing[name] = true
		}
		offset += max(answer.Limit, 1)
		if offset < answer.Total {
			continue
		}
		if len(missing) > 0 {
			return fmt.Errorf(
				"list the hub logs of shard %d: %w (%d)", shard, ErrIncomplete, len(missing),
			)
		}
		return nil
	}
}
