package projector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"

	"hubcloud/projections/schema"
)

// controlInterval is the time between two checks of a stopped projection whether an operator has
// resumed it or has skipped the event.
const controlInterval = time.Second

// errTakenOver means that another process has taken over as the projector.
var errTakenOver = errors.New("another process projects now")

// projection runs one projection under one term: from its checkpoint on, batch by batch.
type projection[E any] struct {
	cfg     Config
	metrics *metrics
	logger  *slog.Logger
	source  Source[E]
	// name is the source's name.
	name string
	// committed is the checkpoint; it advances with each commit.
	committed *schema.Position
	term      int64
	// notifyChannel is the channel on which other processes receive each commit; empty for none.
	notifyChannel string
}

func newProjection[E any](
	p *Projector, source Source[E], committed *schema.Position, term int64,
) *projection[E] {
	return &projection[E]{
		cfg: p.cfg, metrics: p.metrics, logger: p.cfg.Logger.With("projection", source.Name()),
		source: source, name: source.Name(), committed: committed, term: term,
	}
}

// skipped returns the sequences of the events that operators have skipped.
func (p *projection[E]) skipped(ctx context.Context) (map[uint64]bool, error) {
	return Skips(p.cfg.Directory.Skips).Sequences(ctx, p.name)
}

// run projects until ctx ends, and returns nil then. It returns an error only if the broker's
// connection was closed, or if another process has taken over.
func (p *projection[E]) run(ctx context.Context) error {
	wait := schema.FirstRetry
	for {
		begun := time.Now()
		at, err := p.attempt(ctx)
		var stopped *schema.StoppedError
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, errTakenOver):
			return fmt.Errorf("projection %s: %w", p.name, err)
		case errors.As(err, &stopped):
			if p.recordStop(ctx, at, stopped) {
				p.awaitRetry(ctx, stopped)
			}
			continue
		case errors.Is(err, errMoved):
			p.logger.Info("checkpoint moved or projection stopped; reading the checkpoint again")
			schema.Pause(ctx, schema.FirstRetry)
			continue
		}
		if time.Since(begun) > schema.LastRetry {
			wait = schema.FirstRetry
		}
		p.metrics.interruptions.WithLabelValues(schema.ProjectionOf(p.name)).Inc()
		p.logger.Warn(
			"projection interrupted; going on from its checkpoint", "error", err,
			"retry_ms", wait.Milliseconds(),
		)
		schema.Pause(ctx, wait)
		wait = min(2*wait, schema.LastRetry)
	}
}

// attempt runs the projection on one connection until an error. It returns the checkpoint that it
// has reached.
func (p *projection[E]) attempt(ctx context.Context) (at Checkpoint, err error) {
	err = schema.WithConn(ctx, p.cfg.Database, func(conn *pgx.Conn) error {
		a := newAttempt(p, conn)
		defer func() { at = a.writer.Checkpoint }()
		return a.run(ctx)
	})
	return at, err
}

// awaitRetry waits until an operator has skipped the event, at most RetryStopped.
func (p *projection[E]) awaitRetry(ctx context.Context, stopped *schema.StoppedError) {
	deadline := time.Now().Add(p.cfg.RetryStopped)
	for time.Now().Before(deadline) && ctx.Err() == nil {
		schema.Pause(ctx, min(controlInterval, p.cfg.RetryStopped))
		if skipped, err := p.skipped(ctx); err == nil && skipped[stopped.Sequence] {
			return
		}
	}
}

// recordStop records that an event stops the projection at a checkpoint. It returns false if the
// read models have another checkpoint by now: a rebuild has replaced them, and the new ones may be
// able to apply the event.
func (p *projection[E]) recordStop(
	ctx context.Context, at Checkpoint, stopped *schema.StoppedError,
) bool {
	sequence := int64(stopped.Sequence)
	reason := schema.StorableText(stopped.Err.Error())
	kind := schema.StorableText(stopped.Type)
	recording, cancel := context.WithTimeout(ctx, schema.AnswerTimeout)
	defer cancel()
	recorded := int64(0)
	record := func(conn *pgx.Conn) (err error) {
		recorded, err = schema.New(conn).RecordStop(recording, schema.RecordStopParams{
			Projection: p.name, Sequence: &sequence, Type: &kind, Error: &reason,
			Channel: p.cfg.Schema, Checkpoint: int64(at.Sequence), EventID: at.EventID, Term: p.term,
		})
		return err
	}
	err := schema.WithConn(recording, p.cfg.Database, record)
	if err == nil && recorded == 0 {
		p.logger.Info(
			"stop not recorded: the read models were replaced, or another process projects",
			"sequence", stopped.Sequence,
		)
		return false
	}
	p.metrics.stopped.WithLabelValues(p.name).Set(1)
	p.logger.Error(
		"projection stopped until the event can be applied or an operator skips it",
		"sequence", stopped.Sequence, "event_type", stopped.Type, "error", stopped.Err,
		"retry_ms", p.cfg.RetryStopped.Milliseconds(),
	)
	if err != nil {
		p.logger.Warn("stop of the projection not recorded", "error", err)
	}
	return true
}
