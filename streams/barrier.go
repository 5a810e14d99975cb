package streams

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
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"
)

const (
	// heartbeatEvery is how often a replica renews its heartbeat, heartbeatAgain the pause after it
	// could not.
	heartbeatEvery = 2 * time.Second
	heartbeatAgain = 250 * time.Millisecond
	// heartbeatGood is how long a replica may count on a heartbeat: less than HeartbeatTTL, after
	// which the others do not know of the replica any more.
	heartbeatGood = HeartbeatTTL - 2*time.Second
	// barrierAsk is how long a replica may take to answer one question; barrierWay is added for the
	// way there and back.
	barrierAsk = 400 * time.Millisecond
	barrierWay = 200 * time.Millisecond
	// barrierGone is how long a replica may leave questions unanswered until it counts as gone: by
	// then it has stopped acting by its view of the directory (see Freshness), killed or not. In a
	// cluster, where a leader that is deposed and cut off may still confirm an old view, it is
	// barrierGoneInCluster.
	barrierGone          = freshFor + 200*time.Millisecond
	barrierGoneInCluster = leaderActive + freshFor + 500*time.Millisecond
	// barrierPause is the pause between questions to a replica that is not reachable.
	barrierPause = 50 * time.Millisecond
	// barrierAtOnce bounds the answers that a replica works on side by side.
	barrierAtOnce = 512
	// bucketTimeout bounds one operation on the bucket of heartbeats.
	bucketTimeout = 2 * time.Second
)

// Barrier tells when every serving replica has applied an event of the directory, so that what a
// caller was told is in force everywhere.
//
// A replica that serves keeps a heartbeat in the bucket `replicas` and answers questions under its
// id. Wait asks each replica that has a heartbeat. One that does not answer, because it was killed,
// has stopped or is cut off, has nothing confirmed any more by the time that Wait counts it as
// gone: 1.2 s later, 4.5 s in a cluster.
type Barrier struct {
	nc  *nats.Conn
	id  string
	log *slog.Logger
	// beat is when the last heartbeat that is stored was sent.
	beat atomic.Pointer[time.Time]
}

// NewBarrier makes the barrier of a replica, whose id ([A-Za-z0-9_-]+) stays the same over its
// restarts. A caller that only waits needs no id. The buckets must have been opened once, by
// whomever.
func NewBarrier(conns *Conns, replicaID string, log *slog.Logger) *Barrier {
	return &Barrier{nc: conns.Cloud, id: replicaID, log: log}
}

// question is what a replica is asked, and answer what it says: whether it applied Seq within
// WaitMS.
type question struct {
	Seq    uint64 `json:"seq"`
	WaitMS int64  `json:"wait_ms"`
}

type answer struct {
	Applied bool `json:"applied"`
}

// Serve keeps the replica's heartbeat and answers questions until ctx ends, then takes the
// heartbeat away. applied must return nil once everything up to seq is in force in this replica,
// and ctx's error when that takes too long. Serve must run before the replica takes its first
// request.
func (b *Barrier) Serve(
	ctx context.Context, applied func(ctx context.Context, seq uint64) error,
) error {
	if b.id == "" || strings.ContainsAny(b.id, ".*> \t\r\n") {
		return fmt.Errorf("barrier: %q is no id for a replica", b.id)
	}
	bucket, err := b.awaitHeartbeats(ctx)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return b.answerQuestions(ctx, applied) })
	group.Go(func() error { return b.keepHeartbeat(ctx, bucket) })
	return group.Wait()
}

// awaitHeartbeats opens the bucket of heartbeats, however long the broker takes to have a leader
// for it.
func (b *Barrier) awaitHeartbeats(ctx context.Context) (jetstream.KeyValue, error) {
	for {
		var opened jetstream.KeyValue
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

func (b *Barrier) answerQuestions(
	ctx context.Context, applied func(ctx context.Context, seq uint64) error,
) error {
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

func (b *Barrier) answer(
	ctx context.Context, msg *nats.Msg, applied func(ctx context.Context, seq uint64) error,
) {
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

// Registered reports whether the other replicas know of this one: its heartbeat is stored, and does
// not run out yet. A process with the broker inside has nobody to be cut off from, and goes on
// reading while a full disk lets it store nothing.
func (b *Barrier) Registered() bool {
	if b.nc.Opts.InProcessServer != nil {
		return true
	}
	beat := b.beat.Load()
	return beat != nil && time.Since(*beat) < heartbeatGood
}

func (b *Barrier) keepHeartbeat(ctx context.Context, bucket jetstream.KeyValue) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	complained := false
	for {
		select {
		case <-timer.C:
			began := time.Now()
			beating, cancel := context.WithTimeout(ctx, bucketTimeout)
			_, err := bucket.Put(beating, b.id, []byte("{}"))
			cancel()
			switch {
			case err == nil:
				b.beat.Store(&began)
				complained = false
				timer.Reset(heartbeatEvery)
			case ctx.Err() == nil:
				if !complained {
					complained = true
					b.log.Warn(
						"barrier could not renew the replica's heartbeat; trying again",
						"replica", b.id, "error", err,
					)
				}
				timer.Reset(heartbeatAgain)
			}
		case <-ctx.Done():
			b.beat.Store(nil)
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), barrierGone)
			defer cancel()
			if err := bucket.Delete(last, b.id); err != nil {
				b.log.Warn(
					"barrier could not take the replica's heartbeat away", "replica", b.id,
					"error", err,
				)
			}
			return ctx.Err()
		}
	}
}

// Wait returns nil once every replica that is alive has applied the event at seq. Its error is
// ctx's when that takes longer: the event stands, only its effect everywhere is not certain yet.
func (b *Barrier) Wait(ctx context.Context, seq uint64) error {
	ids, err := replicas(ctx, b.nc)
	if err != nil {
		return fmt.Errorf("barrier: list the replicas: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, id := range ids {
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
	payload, err := json.Marshal(question{Seq: seq, WaitMS: barrierAsk.Milliseconds()})
	if err != nil {
		return err
	}
	gone := barrierGone
	if b.nc.ConnectedClusterName() != "" {
		gone = barrierGoneInCluster
	}
	var unreachable time.Time // since when
	for {
		asked := time.Now()
		applied, err := b.ask(ctx, id, payload)
		switch {
		case applied:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			unreachable = time.Time{}
			continue // it is alive and behind, and has waited before it said so
		case !unreachable.IsZero() && time.Since(unreachable) > gone:
			b.log.Warn("barrier counts a replica as gone", "replica", id, "sequence", seq)
			return nil
		case ended(ctx, b.nc, id):
			return nil
		case unreachable.IsZero():
			unreachable = asked
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
