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

// streamInfo is what the broker's API says of a stream, as far as it is read here.
type streamInfo struct {
	Config struct {
		Name   string        `json:"name"`
		MaxAge time.Duration `json:"max_age"`
	} `json:"config"`
	State struct {
		Messages   uint64    `json:"messages"`
		First      uint64    `json:"first_seq"`
		Last       uint64    `json:"last_seq"`
		LastStored time.Time `json:"last_ts"`
	} `json:"state"`
}

func (i *streamInfo) bounds() bounds {
	b := bounds{first: i.State.First, last: i.State.Last}
	if i.State.Messages == 0 {
		b.first = b.last + 1
	}
	return b
}

// State is what the stream of a hub's log holds.
type State struct {
	// First and Last are its first and last sequence; First is Last+1 when it holds nothing. They are 1 and 0 without a stream.
	First, Last uint64
	// LastStored is when the last message was stored.
	LastStored time.Time
	// Retention is how long messages are kept; 0 without a stream.
	Retention time.Duration
}

func (i *streamInfo) state() State {
	b := i.bounds()
	return State{First: b.first, Last: b.last, LastStored: i.State.LastStored, Retention: i.Config.MaxAge}
}

// State asks the leader of a log's stream what it holds.
func (s *Source) State(ctx context.Context, hub domain.HubID) (State, error) {
	var answer struct {
		streamInfo
		Error *streams.BrokerError `json:"error"`
	}
	if err := ask(ctx, s.lanes.nc, s.api(hub)+".STREAM.INFO."+streams.HubStream(hub), nil, &answer); err != nil {
		return State{}, fmt.Errorf("hub log of %s: %w", hub, err)
	}
	if e := answer.Error; e != nil {
		if e.Code == codeNoStream {
			return State{First: 1}, nil
		}
		return State{}, fmt.Errorf("hub log of %s: %w", hub, e)
	}
	return answer.state(), nil
}

// ErrIncomplete says that some of the logs have no leader at the moment that could say what they hold.
var ErrIncomplete = errors.New("some hub logs have no leader at the moment")

// List gives the hub logs of a shard and what each holds, calling found for each. One that is made meanwhile may be missing. ErrIncomplete comes
// after all those that could be had.
func (s *Source) List(ctx context.Context, shard int, found func(domain.HubID, State)) error {
	missing := 0
	prefix := streams.HubStream("")
	for offset := 0; ; {
		var answer struct {
			Total   int                  `json:"total"`
			Limit   int                  `json:"limit"`
			Streams []streamInfo         `json:"streams"`
			Missing []string             `json:"missing"`
			Error   *streams.BrokerError `json:"error"`
		}
		request := append(strconv.AppendInt([]byte(`{"offset":`), int64(offset), 10), '}')
		if err := ask(ctx, s.lanes.nc, streams.ShardAPI(shard)+".STREAM.LIST", request, &answer); err != nil {
			return fmt.Errorf("list the hub logs of shard %d: %w", shard, err)
		}
		if answer.Error != nil {
			return fmt.Errorf("list the hub logs of shard %d: %w", shard, answer.Error)
		}
		for i := range answer.Streams {
			name, ok := strings.CutPrefix(answer.Streams[i].Config.Name, prefix)
			if hub, valid := domain.ParseHubID(name); ok && valid {
				found(hub, answer.Streams[i].state())
			}
		}
		missing += len(answer.Missing)
		offset += max(answer.Limit, 1)
		if offset < answer.Total {
			continue
		}
		if missing > 0 {
			return fmt.Errorf("list the hub logs of shard %d: %w (%d)", shard, ErrIncomplete, missing)
		}
		return nil
	}
}
