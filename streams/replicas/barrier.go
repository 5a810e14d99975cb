package replicas

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

const (
	// replyWait is how long a replica may take to reply to one request; replyTransit is added for
	// the way there and back.
	replyWait    = 400 * time.Millisecond
	replyTransit = 200 * time.Millisecond
	// goneAfter is how long a replica may leave requests without a reply until it counts as gone:
	// by then it has stopped acting by its view of the directory (see Freshness), killed or not. In
	// a cluster, where a deposed leader that is cut off may still confirm an old view, it is
	// goneAfterInCluster.
	goneAfter          = freshFor + 200*time.Millisecond
	goneAfterInCluster = jsapi.LeaderActive + freshFor + 500*time.Millisecond
	// askPause is the pause between requests to a replica that cannot be reached.
	askPause = 50 * time.Millisecond
	// maxReplies bounds the requests that a replica works on at the same time.
	maxReplies = 512
)

// Embedded is the id of the replica with the broker inside. It cannot be cut off from the broker,
// so it keeps no heartbeat and confirms no view, and Barrier.Wait waits for it however long that
// takes.
const Embedded = "embedded"

// Barrier waits until every serving replica has applied an event of the directory, so that a change
// is in force everywhere before the caller gets its answer. Safe for concurrent use.
//
// A replica that serves keeps a heartbeat in the bucket `replicas` and replies to requests under
// its id. Wait asks each replica that has a heartbeat, and Embedded. A replica that does not reply,
// because it was killed, has stopped, is slow or is cut off, has no confirmed view any more by the
// time that Wait counts it as gone: after 1.2 s, in a cluster 4.5 s.
type Barrier struct {
	nc     *nats.Conn
	id     string
	logger *slog.Logger
	// renewed is when the last heartbeat that is stored was sent.
	renewed atomic.Pointer[time.Time]
}

// NewBarrier returns the barrier of a replica, whose id ([A-Za-z0-9_-]+) stays the same over its
// restarts. A caller that only waits needs no id. The buckets must have been made before. A nil
// logger means slog.Default().
func NewBarrier(conns *streams.Conns, replicaID string, logger *slog.Logger) *Barrier {
	if logger == nil {
		logger = slog.Default()
	}
	return &Barrier{nc: conns.Cloud, id: replicaID, logger: logger}
}

// appliedRequest asks a replica whether it applies Seq within WaitMS, and appliedReply is its
// reply.
type appliedRequest struct {
	Seq    uint64 `json:"seq"`
	WaitMS int64  `json:"wait_ms"`
}

type appliedReply struct {
	Applied bool `json:"applied"`
}

// Serve keeps the replica's heartbeat and replies to requests until ctx ends, then deletes the
// heartbeat. applied must return nil once everything up to seq is in force in this replica, and
// ctx's error when that takes too long. Serve must run before the replica handles its first
// request.
func (b *Barrier) Serve(
	ctx context.Context, applied func(ctx context.Context, seq uint64) error,
) error {
	if b.id == "" || strings.ContainsAny(b.id, ".*> \t\r\n") {
		return fmt.Errorf("barrier: replica id %q: must be one word of [A-Za-z0-9_-]", b.id)
	}
	if b.id == Embedded {
		return b.replyAll(ctx, applied)
	}
	bucket, err := b.awaitHeartbeats(ctx)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return b.replyAll(ctx, applied) })
	group.Go(func() error { return b.keepHeartbeat(ctx, bucket) })
	return group.Wait()
}

func (b *Barrier) replyAll(
	ctx context.Context, applied func(ctx context.Context, seq uint64) error,
) error {
	requests := make(chan *nats.Msg, maxReplies)
	sub, err := b.nc.ChanSubscribe(streams.BarrierSubject(b.id), requests)
	if err != nil {
		return fmt.Errorf("barrier: %w", err)
	}
	defer streams.Unsubscribe(sub)

	var replies errgroup.Group
	replies.SetLimit(maxReplies)
	defer func() { _ = replies.Wait() }() // the goroutines return no errors
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case msg := <-requests:
			replies.Go(func() error {
				b.reply(ctx, msg, applied)
				return nil
			})
		}
	}
}

func (b *Barrier) reply(
	ctx context.Context, msg *nats.Msg, applied func(ctx context.Context, seq uint64) error,
) {
	var r appliedRequest
	if err := json.Unmarshal(msg.Data, &r); err != nil {
		b.logger.Warn("barrier request not readable", "error", err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(r.WaitMS)*time.Millisecond)
	defer cancel()
	raw, err := json.Marshal(appliedReply{Applied: applied(ctx, r.Seq) == nil})
	if err == nil {
		err = msg.Respond(raw)
	}
	if err != nil {
		b.logger.Warn("barrier reply not sent", "sequence", r.Seq, "error", err)
	}
}

// Wait returns nil once every replica that is alive has applied the event at seq. Its error is
// ctx's if that takes longer: the event is stored, only its effect everywhere is not certain yet.
func (b *Barrier) Wait(ctx context.Context, seq uint64) error {
	ids, err := b.registered(ctx)
	if err != nil {
		return fmt.Errorf("barrier: list the replicas: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, id := range append(ids, Embedded) {
		group.Go(func() error {
			if err := b.waitFor(ctx, id, seq); err != nil {
				return fmt.Errorf(
					"barrier: replica %s has not applied sequence %d: %w", id, seq, err,
				)
			}
			return nil
		})
	}
	return group.Wait()
}

// waitFor asks one replica until it has applied seq or is gone.
func (b *Barrier) waitFor(ctx context.Context, id string, seq uint64) error {
	payload, err := json.Marshal(appliedRequest{Seq: seq, WaitMS: replyWait.Milliseconds()})
	if err != nil {
		return err
	}
	gone := goneAfter
	if !streams.IsSingle(b.nc) {
		gone = goneAfterInCluster
	}
	var silentSince time.Time // zero while the replica replies
	for {
		asked := time.Now()
		applied, err := b.ask(ctx, id, payload)
		switch {
		case applied:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			silentSince = time.Time{}
			continue // alive and behind; it has waited before it replied
		case id == Embedded && errors.Is(err, nats.ErrNoResponders):
			return nil // the broker is in no replica
		case id == Embedded:
		case !silentSince.IsZero() && time.Since(silentSince) > gone:
			b.logger.Warn("replica counts as gone", "replica", id, "sequence", seq)
			return nil
		case b.hasEnded(ctx, id):
			return nil
		case silentSince.IsZero():
			silentSince = asked
		}
		if !streams.Sleep(ctx, askPause) {
			return ctx.Err()
		}
	}
}

// ask asks a replica once, and returns whether the replica has applied the event of the payload.
func (b *Barrier) ask(ctx context.Context, id string, payload []byte) (applied bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, replyWait+replyTransit)
	defer cancel()
	msg, err := b.nc.RequestWithContext(ctx, streams.BarrierSubject(id), payload)
	if err != nil {
		return false, err
	}
	var reply appliedReply
	if err := json.Unmarshal(msg.Data, &reply); err != nil {
		return false, err
	}
	return reply.Applied, nil
}
