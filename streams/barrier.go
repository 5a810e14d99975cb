package streams

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"
)

const (
	// heartbeatEvery is how often a replica renews its heartbeat: three may be missed in HeartbeatTTL.
	heartbeatEvery = 3 * time.Second
	// barrierAsk is how long a replica may take to answer one question; barrierWay is added for the way there and back.
	barrierAsk = 400 * time.Millisecond
	barrierWay = 200 * time.Millisecond
	// barrierGone is how long a replica may be without a subscription until it counts as gone. The broker drops a subscription as soon as a
	// killed process's connection breaks; a replica that only reconnects is back within a fraction of this.
	barrierGone = 1200 * time.Millisecond
	// barrierPause is the pause between questions to a replica that is not reachable.
	barrierPause = 50 * time.Millisecond
	// barrierAtOnce bounds the answers that a replica works on side by side.
	barrierAtOnce = 512
	// bucketTimeout bounds one operation on the bucket of heartbeats.
	bucketTimeout = 5 * time.Second
)

// Barrier tells when every serving replica has applied an event of the directory, so that what a caller was told is in force everywhere.
//
// A replica that serves keeps a heartbeat in the bucket `replicas` and answers questions under its id. Wait asks each replica that has a
// heartbeat. One that is killed has no subscription any more: after 1.2 s without one it counts as gone, whatever its heartbeat says.
type Barrier struct {
	nc  *nats.Conn
	id  string
	log *slog.Logger
}

// NewBarrier makes the barrier of a replica, whose id ([A-Za-z0-9_-]+) stays the same over its restarts. A caller that only waits needs no id. The
// buckets must have been opened once, by whomever.
func NewBarrier(conns *Conns, replicaID string, log *slog.Logger) *Barrier {
	return &Barrier{nc: conns.Cloud, id: replicaID, log: log}
}

// question is what a replica is asked, and answer what it says: whether it applied Seq within WaitMS.
type question struct {
	Seq    uint64 `json:"seq"`
	WaitMS int64  `json:"wait_ms"`
}

type answer struct {
	Applied bool `json:"applied"`
}

// Serve keeps the replica's heartbeat and answers questions until ctx ends, then takes the heartbeat away. applied must return nil once
// everything up to seq is in force in this replica, and ctx's error when that takes too long. Serve must run before the replica takes its
// first request.
func (b *Barrier) Serve(ctx context.Context, applied func(ctx context.Context, seq uint64) error) error {
	if b.id == "" || strings.ContainsAny(b.id, ".*> \t\r\n") {
		return fmt.Errorf("barrier: %q is no id for a replica", b.id)
	}
	heartbeats, err := b.awaitHeartbeats(ctx)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return b.answerQuestions(ctx, applied) })
	group.Go(func() error { return b.keepHeartbeat(ctx, heartbeats) })
	return group.Wait()
}

// awaitHeartbeats opens the bucket of heartbeats, however long the broker takes to have a leader for it.
func (b *Barrier) awaitHeartbeats(ctx context.Context) (heartbeats, error) {
	for {
		var opened heartbeats
		err := SetUp(ctx, func(ctx context.Context) (err error) {
			opened, err = openHeartbeats(ctx, b.nc)
			return err
		})
		if err == nil || ctx.Err() != nil || errors.Is(err, nats.ErrConnectionClosed) {
			return opened, err
		}
		b.log.Warn("barrier could not open the replicas' heartbeats", "error", err)
		select {
		case <-time.After(heartbeatEvery):
		case <-ctx.Done():
		}
	}
}

func (b *Barrier) answerQuestions(ctx context.Context, applied func(ctx context.Context, seq uint64) error) error {
	questions := make(chan *nats.Msg, barrierAtOnce)
	sub, err := b.nc.ChanSubscribe(BarrierSubject(b.id), questions)
	if err != nil {
		return fmt.Errorf("barrier: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only with the connection, which ends it too

	var answers errgroup.Group
	answers.SetLimit(barrierAtOnce)
	defer func() { _ = answers.Wait() }() // their goroutines return no errors
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case msg := <-questions:
			answers.Go(func() error {
				b.answer(ctx, msg, applied)
				return nil
			})
		}
	}
}

func (b *Barrier) answer(ctx context.Context, msg *nats.Msg, applied func(ctx context.Context, seq uint64) error) {
	var q question
	if err := json.Unmarshal(msg.Data, &q); err != nil {
		b.log.Warn("barrier got an unreadable question", "error", err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(q.WaitMS)*time.Millisecond)
	defer cancel()
	raw, err := json.Marshal(answer{Applied: applied(ctx, q.Seq) == nil})
	if err == nil {
		err = msg.Respond(raw)
	}
	if err != nil {
		b.log.Warn("barrier could not answer", "sequence", q.Seq, "error", err)
	}
}

func (b *Barrier) keepHeartbeat(ctx context.Context, heartbeats heartbeats) error {
	beat := func() {
		ctx, cancel := context.WithTimeout(ctx, bucketTimeout)
		defer cancel()
		if _, err := heartbeats.Put(ctx, b.id, []byte("{}")); err != nil && ctx.Err() == nil {
			b.log.Warn("barrier could not renew the replica's heartbeat", "replica", b.id, "error", err)
		}
	}
	ticker := time.NewTicker(heartbeatEvery)
	defer ticker.Stop()
	beat()
	for {
		select {
		case <-ticker.C:
			beat()
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), barrierGone)
			defer cancel()
			if err := heartbeats.Delete(last, b.id); err != nil {
				b.log.Warn("barrier could not take the replica's heartbeat away", "replica", b.id, "error", err)
			}
			return ctx.Err()
		}
	}
}

// Wait returns nil once every replica that is alive has applied the event at seq. Its error is ctx's when that takes longer: the event stands,
// only its effect everywhere is not certain yet.
func (b *Barrier) Wait(ctx context.Context, seq uint64) error {
	heartbeats, err := openHeartbeats(ctx, b.nc)
	if err != nil {
		return err
	}
	ids, err := heartbeats.alive(ctx)
	if err != nil {
		return fmt.Errorf("barrier: list the replicas: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, id := range ids {
		group.Go(func() error {
			if err := b.waitFor(ctx, heartbeats, id, seq); err != nil {
				return fmt.Errorf("barrier: replica %s has not applied sequence %d: %w", id, seq, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// waitFor asks one replica until it has applied seq or is gone.
func (b *Barrier) waitFor(ctx context.Context, heartbeats heartbeats, id string, seq uint64) error {
	payload, err := json.Marshal(question{Seq: seq, WaitMS: barrierAsk.Milliseconds()})
	if err != nil {
		return err
	}
	var unreachable time.Time // since when
	for {
		applied, err := b.ask(ctx, id, payload)
		switch {
		case applied:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			unreachable = time.Time{}
			continue // it is alive and behind, and has waited before it said so
		case heartbeats.ended(ctx, id):
			return nil
		case !errors.Is(err, nats.ErrNoResponders):
			unreachable = time.Time{}
		case unreachable.IsZero():
			unreachable = time.Now()
		case time.Since(unreachable) > barrierGone:
			b.log.Warn("barrier counts a replica as gone", "replica", id, "sequence", seq)
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(barrierPause):
		}
	}
}

func (b *Barrier) ask(ctx context.Context, id string, payload []byte) (applied bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, barrierAsk+barrierWay)
	defer cancel()
	msg, err := b.nc.RequestWithContext(ctx, BarrierSubject(id), payload)
	if err != nil {
		return false, err
	}
	var a answer
	if err := json.Unmarshal(msg.Data, &a); err != nil {
		return false, err
	}
	return a.Applied, nil
}
