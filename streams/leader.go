package streams

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/domain"
)

// JetStreamPrefix begins the subjects of the broker's JetStream API in an account of its own.
const JetStreamPrefix = "$JS.API"

// leaderActive is how lately a stream's leader must have heard from a majority of its group:
// followers answer its heartbeats once a second. A deposed leader that is cut off from the others
// believes in its office for up to 20 s, and knows nothing of what the next one stores.
const leaderActive = 3 * time.Second

// StreamState is what a stream's leader says of its stream.
type StreamState struct {
	Config struct {
		Name     string        `json:"name"`
		MaxAge   time.Duration `json:"max_age"`
		Replicas int           `json:"num_replicas"`
	} `json:"config"`
	State struct {
		Messages   uint64            `json:"messages"`
		First      uint64            `json:"first_seq"`
		Last       uint64            `json:"last_seq"`
		LastStored time.Time         `json:"last_ts"`
		Subjects   map[string]uint64 `json:"subjects"`
	} `json:"state"`
	// Cluster is nil on a server by itself.
	Cluster *StreamGroup `json:"cluster"`
}

// StreamGroup is the group of servers that keep a stream, as the server that answered sees it.
type StreamGroup struct {
	Leader string `json:"leader"`
	// Peers are the others of the group.
	Peers []StreamPeer `json:"replicas"`
}

// StreamPeer is another server of a group.
type StreamPeer struct {
	Name string `json:"name"`
	// Active is how long ago it was heard, 0 for never.
	Active time.Duration `json:"active"`
}

// CheckLeader returns an error that is Passing unless the answer is a leader's own and the leader
// has lately heard from a majority. A follower that knows of no leader answers too, from what it
// has, which may be old.
func (s *StreamState) CheckLeader() error {
	g := s.Cluster
	switch {
	case g == nil:
		return nil
	case g.Leader == "":
		return fmt.Errorf("%w: a follower answered", errNoLeader)
	}
	heard := 1
	for _, peer := range g.Peers {
		if peer.Name == g.Leader { // a leader does not list itself
			return fmt.Errorf("%w: a follower answered", errNoLeader)
		}
		if peer.Active > 0 && peer.Active < leaderActive {
			heard++
		}
	}
	if size := 1 + len(g.Peers); heard <= size/2 {
		return fmt.Errorf(
			"%w: its leader %s hears %d of %d servers", errNoLeader, g.Leader, heard, size,
		)
	}
	return nil
}

// AskState asks a stream's leader for the stream's state, as Ask does: an answer that is not the
// leader's is no answer. The prefix is JetStreamPrefix or a ShardAPI; subjects, unless it is "", is
// a filter of the subjects to count. ErrNoStream says that the stream does not exist. In a cluster
// that is the word of the cluster's leader, which may be deposed and cut off, so callers that know
// of the stream must not believe it.
func AskState(
	ctx context.Context, nc *nats.Conn, prefix, stream, subjects string,
) (*StreamState, error) {
	var question []byte
	if subjects != "" {
		var err error
		if question, err = json.Marshal(map[string]string{
			"subjects_filter": subjects,
		}); err != nil {
			return nil, err
		}
	}
	var state *StreamState
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	err := persist(ctx, askTimeout, func(ctx context.Context) error {
		text, err := askOnce(ctx, nc, prefix+".STREAM.INFO."+stream, question)
		if err != nil {
			return err
		}
		var answer struct {
			StreamState
			Error *BrokerError `json:"error"`
		}
		if err := json.Unmarshal(text, &answer); err != nil {
			return fmt.Errorf("the broker's answer: %w", err)
		}
		switch e := answer.Error; {
		case e != nil && e.Code == codeStreamNotFound:
			return fmt.Errorf("%w: %w", ErrNoStream, e)
		case e != nil:
			return e
		}
		state = &answer.StreamState
		return state.CheckLeader()
	})
	if err != nil {
		return nil, fmt.Errorf("state of stream %s: %w", stream, err)
	}
	return state, nil
}

// ErrDoubtful says that the broker's answer contradicts what was seen before and that no leader has
// confirmed it yet.
var ErrDoubtful = errors.New("the broker contradicts what was seen before")

const (
	// doubtFor is how long one leader must repeat what contradicts what was seen before it is
	// believed: a leader that is deposed has by then heard of it, or has not heard from a majority
	// for longer than leaderActive.
	doubtFor = leaderActive + time.Second
	// doubtPause is the pause between two questions meanwhile.
	doubtPause = 250 * time.Millisecond
)

// AskLast is AskState for callers that know that the stream had a message with the sequence seen. A
// state that ends before seen is returned only when a leader has repeated it for some seconds, or
// at once by a server by itself, whose word cannot be old. A cluster's word that there is no such
// stream is not believed unless seen is 0. The error is ErrDoubtful when no leader confirms the
// state within 15 s or before ctx ends.
func AskLast(
	ctx context.Context, nc *nats.Conn, prefix, stream string, seen uint64,
) (*StreamState, error) {
	return confirm(
		ctx,
		stream,
		seen,
		func(ctx context.Context) (state *StreamState, missing bool, err error) {
			state, err = AskState(ctx, nc, prefix, stream, "")
			alone := nc.IsConnected() && nc.ConnectedClusterName() == ""
			return state, errors.Is(err, ErrNoStream) && seen > 0 && !alone, err
		},
	)
}

// LastRevision returns the last revision of a bucket as AskLast would: the leader must confirm one
// before seen.
func LastRevision(ctx context.Context, bucket jetstream.KeyValue, seen uint64) (uint64, error) {
	state, err := confirm(
		ctx,
		bucket.Bucket(),
		seen,
		func(ctx context.Context) (*StreamState, bool, error) {
			state := &StreamState{}
			err := persist(ctx, askTimeout, func(ctx context.Context) error {
				status, err := bucket.Status(ctx)
				if err != nil {
					return err
				}
				known, ok := status.(*jetstream.KeyValueBucketStatus)
				if !ok {
					return fmt.Errorf("bucket %s: its status is a %T", bucket.Bucket(), status)
				}
				info := known.StreamInfo()
				state.State.Last, state.Cluster = info.State.LastSeq, groupOf(info.Cluster)
				return state.CheckLeader()
			})
			return state, false, err
		},
	)
	if err != nil {
		return 0, err
	}
	return state.State.Last, nil
}

func groupOf(c *jetstream.ClusterInfo) *StreamGroup {
	if c == nil {
		return nil
	}
	group := &StreamGroup{Leader: c.Leader}
	for _, peer := range c.Replicas {
		group.Peers = append(group.Peers, StreamPeer{Name: peer.Name, Active: peer.Active})
	}
	return group
}

// confirm asks until a state reaches seen or is to be believed. missing says that the stream is
// said not to exist, which is not believed.
func confirm(
	ctx context.Context, name string, seen uint64,
	ask func(context.Context) (state *StreamState, missing bool, err error),
) (*StreamState, error) {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	var leader string
	var since time.Time
	for {
		state, missing, err := ask(ctx)
		switch {
		case missing:
			since = time.Time{}
		case err != nil || state.State.Last >= seen || state.Cluster == nil:
			return state, err
		case since.IsZero() || state.Cluster.Leader != leader:
			leader, since = state.Cluster.Leader, time.Now()
		case time.Since(since) >= doubtFor:
			return state, nil
		}
		select {
		case <-ctx.Done():
			if missing {
				return nil, fmt.Errorf(
					"%w: %s had sequence %d, and now it is not there", ErrDoubtful, name, seen,
				)
			}
			return nil, fmt.Errorf(
				"%w: %s had sequence %d and ends at %d", ErrDoubtful, name, seen, state.State.Last,
			)
		case <-time.After(doubtPause):
		}
	}
}

// Unavailable returns err as a domain.Unavailable with the message given when it is Passing, and
// err itself otherwise. A *domain.Error stays what it is.
func Unavailable(err error, format string, args ...any) error {
	var known *domain.Error
	if err == nil || errors.As(err, &known) || !Passing(err) {
		return err
	}
	return fmt.Errorf("%w: %w", domain.Unavailable(format, args...), err)
}
