package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	"hubcloud/domain"
	"hubcloud/streams"
)

const (
	// maxAnswer bounds the faults of one answer.
	maxAnswer = 200
	// concurrentQueries is how many shards are asked at once.
	concurrentQueries = 32
)

// question asks the replica that serves a shard for faults.
type question struct {
	// HubID is the hub whose faults are wanted; "" asks for the faults of every hub of the shard.
	HubID domain.HubID `json:"hub_id"`
}

// answer has the faults, at most maxAnswer. Left is how many it leaves out.
type answer struct {
	Faults []Fault `json:"faults"`
	Left   int     `json:"left"`
}

// Serve answers questions about the hubs of a shard until the returned function is called.
func (r *FaultRegistry) Serve(conns *streams.Conns, shard int) (stop func(), err error) {
	shards := len(conns.Shards)
	sub, err := conns.Cloud.Subscribe(streams.HubFaultsSubject(shard), func(msg *nats.Msg) {
		var q question
		if json.Unmarshal(msg.Data, &q) != nil {
			return
		}
		var a answer
		a.Faults = r.Faults(func(hub domain.HubID) bool {
			return hub == q.HubID || q.HubID == "" && streams.ShardOf(hub, shards) == shard
		})
		if len(a.Faults) > maxAnswer {
			a.Faults, a.Left = a.Faults[:maxAnswer], len(a.Faults)-maxAnswer
		}
		if text, err := json.Marshal(a); err == nil {
			_ = msg.Respond(text) // the other side asks again, or goes on without
		}
	})
	if err != nil {
		return nil, fmt.Errorf("hub faults of shard %d: %w", shard, err)
	}
	return func() { streams.Unsubscribe(sub) }, nil
}

// ErrNotServed reports that no replica serves a shard at present.
var ErrNotServed = errors.New("no replica serves the hub's shard")

// FaultReader asks the replicas that serve hubs for their faults.
type FaultReader struct{ conns *streams.Conns }

// NewFaultReader returns a FaultReader.
func NewFaultReader(conns *streams.Conns) *FaultReader { return &FaultReader{conns} }

// Hub returns the present faults of a hub. The error is ErrNotServed or ctx's.
func (r *FaultReader) Hub(ctx context.Context, hub domain.HubID) ([]Fault, error) {
	a, err := r.ask(ctx, streams.ShardOf(hub, len(r.conns.Shards)), question{HubID: hub})
	return a.Faults, err
}

// All returns the present faults of all hubs, and how many it leaves out. After an error the faults
// are of the shards that answered.
func (r *FaultReader) All(ctx context.Context) (faults []Fault, left int, err error) {
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(concurrentQueries)
	for shard := range r.conns.Shards {
		group.Go(func() error {
			a, err := r.ask(ctx, shard, question{})
			mu.Lock()
			defer mu.Unlock()
			faults, left = append(faults, a.Faults...), left+a.Left
			return err
		})
	}
	err = group.Wait()
	return faults, left, err
}

func (r *FaultReader) ask(ctx context.Context, shard int, q question) (a answer, err error) {
	text, err := json.Marshal(q)
	if err != nil {
		return a, err
	}
	msg, err := r.conns.Cloud.RequestWithContext(ctx, streams.HubFaultsSubject(shard), text)
	if errors.Is(err, nats.ErrNoResponders) {
		return a, fmt.Errorf("shard %d: %w", shard, ErrNotServed)
	}
	if err != nil {
		return a, fmt.Errorf("shard %d: %w", shard, err)
	}
	return a, json.Unmarshal(msg.Data, &a)
}
