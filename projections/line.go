package projections

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"

	"hubcloud/domain"
	"hubcloud/projections/internal/query"
)

const (
	// retryStopped is how long a stopped projection waits before it tries its event again.
	retryStopped = 10 * time.Second
	// commitLimit bounds one batch's transaction: a database that does not answer is left and
	// connected to anew.
	commitLimit = 30 * time.Second
	// controlEvery is how often a projection that stands still looks whether an operator has it go
	// on.
	controlEvery = time.Second
)

// mark is where an entry stands.
type mark struct {
	seq uint64
	// kind is the event's type, id its own id; empty where there is none.
	kind, id string
	// err says that the entry cannot be read.
	err error
}

// source is the stream that a projection is made from, and what its entries mean to the tables.
type source[E any] interface {
	name() string
	// head gives the sequence of the stream's last entry.
	head(ctx context.Context, seen uint64) (uint64, error)
	// follow gives every entry after a sequence, in order, and new ones as they come. It ends with
	// fn's error or with ctx's.
	follow(ctx context.Context, after uint64, fn func(batch []E) error) error
	mark(entry E) mark
	// statements gives what a batch does to the tables, or an error that isPermanent.
	statements(batch []E) ([]statement, error)
}

// line runs one projection: from its checkpoint on, batch by batch, each in one transaction with
// the checkpoint.
type line[E any] struct {
	store  *Store
	source source[E]
	log    *slog.Logger
	// committed is told of every commit.
	committed *progress
	// term is that of the projector whose line it is.
	term int64
	// announce says that other processes are told too.
	announce bool
	// skips gives the entries that operators have projections step over.
	skips func(ctx context.Context, projection string) (map[uint64]domain.ProjectionSkipped, error)
}

// skipped gives the entries that operators have it step over.
func (l *line[E]) skipped(ctx context.Context) (map[uint64]bool, error) {
	return sequencesOf(ctx, l.skips, l.source.name())
}

func sequencesOf(
	ctx context.Context,
	skips func(context.Context, string) (map[uint64]domain.ProjectionSkipped, error),
	projection string,
) (map[uint64]bool, error) {
	known, err := skips(ctx, projection)
	if err != nil {
		return nil, err
	}
	sequences := make(map[uint64]bool, len(known))
	for seq := range known {
		sequences[seq] = true
	}
	return sequences, nil
}

// run projects until ctx ends, whatever happens on the way. It returns nil then, and an error only
// when the broker's connection was closed for good, or when another process has taken over.
func (l *line[E]) run(ctx context.Context) error {
	wait := firstRetry
	for {
		begun := time.Now()
		var at checkpoint
		err := l.store.with(ctx, func(conn *pgx.Conn) error {
			p := newPass(l, conn)
			defer func() { at = checkpoint{p.writer.checkpoint, p.writer.eventID} }()
			return p.run(ctx)
		})
		var stopped *StoppedError
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, errDeposed):
			return fmt.Errorf("projection %s: %w", l.source.name(), err)
		case errors.As(err, &stopped):
			if l.stop(ctx, at, stopped) {
				l.awaitSkip(ctx, stopped)
			}
			continue
		case errors.Is(err, errMoved):
			l.log.Info(
				"the checkpoint was moved, or an operator stops the projection; going on from where it is",
			)
			pause(ctx, firstRetry)
			continue
		}
		if time.Since(begun) > lastRetry {
			wait = firstRetry
		}
		l.store.metrics.interruptions.WithLabelValues(l.source.name()).Inc()
		l.log.Warn(
			"the projection was interrupted; going on from its checkpoint", "error", err,
			"wait_ms", wait.Milliseconds(),
		)
		pause(ctx, wait)
		wait = min(2*wait, lastRetry)
	}
}

// awaitSkip waits until it is time to try an event again: when an operator has skipped it, or after
// a while in any case.
func (l *line[E]) awaitSkip(ctx context.Context, stopped *StoppedError) {
	for deadline := time.Now().Add(l.store.retryStopped); time.Now().Before(deadline) && ctx.Err() == nil; {
		pause(ctx, min(controlEvery, l.store.retryStopped))
		if skipped, err := l.skipped(ctx); err == nil && skipped[stopped.Sequence] {
			return
		}
	}
}

// checkpoint is how far a projection's tables are: the last event that they have.
type checkpoint struct {
	sequence uint64
	eventID  string
}

// stop records that an event stops the projection, which had come to the checkpoint at. It returns
// false when the read models have another checkpoint by now: those that the event stopped have been
// replaced, and nothing is known to be wrong with the new ones.
func (l *line[E]) stop(ctx context.Context, at checkpoint, stopped *StoppedError) bool {
	sequence, reason := int64(stopped.Sequence), storable(stopped.Err.Error())
	kind := storable(stopped.Type)
	telling, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	recorded := int64(0)
	err := l.store.with(telling, func(conn *pgx.Conn) (err error) {
		recorded, err = query.New(conn).Stop(telling, query.StopParams{
			Projection: l.source.name(), Sequence: &sequence, Type: &kind, Error: &reason,
			Channel:    l.store.schema,
			Checkpoint: int64(at.sequence), EventID: at.eventID, Term: l.term,
		})
		return err
	})
	if err == nil && recorded == 0 {
		l.log.Info(
			"the read models are others than those that an event stopped, or another process projects",
			"sequence", stopped.Sequence,
		)
		return false
	}
	l.store.metrics.stopped.WithLabelValues(l.source.name()).Set(1)
	l.log.Error(
		"the projection is stopped; it is tried again, and goes on once a program that "+
			"understands the event runs or an operator skips it",
		"sequence",
		stopped.Sequence,
		"event_type",
		stopped.Type,
		"error",
		stopped.Err,
		"retry_ms",
		l.store.retryStopped.Milliseconds(),
	)
	if err != nil {
		l.log.Warn("cannot record that the projection is stopped", "error", err)
	}
	return true
}
