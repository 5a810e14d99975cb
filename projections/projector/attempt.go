package projector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"hubcloud/projections/schema"
)

// attempt runs a projection on one connection, from the checkpoint until an error.
type attempt[E any] struct {
	projection *projection[E]
	writer     *writer[E]
	conn       *pgx.Conn
	queries    *schema.Queries
	// head is the sequence of the stream's last event when the attempt began. The tables are
	// complete once they have that event.
	head uint64
	// built means that the first build of the tables is complete.
	built bool
	// staleStop means that the database has a stop about an event that is in the tables. The
	// attempt removes that stop once it is certain that the tables were built from this stream.
	staleStop bool
}

func newAttempt[E any](p *projection[E], conn *pgx.Conn) *attempt[E] {
	return &attempt[E]{
		projection: p, conn: conn, queries: schema.New(conn),
		writer: &writer[E]{
			Source: p.source, Conn: conn, Term: p.term, RespectStops: true,
			NotifyChannel: p.notifyChannel,
		},
	}
}

func (a *attempt[E]) run(ctx context.Context) error {
	if err := a.awaitResume(ctx); err != nil {
		return err
	}
	if err := a.readCheckpoint(ctx); err != nil {
		return err
	}
	at := a.writer.Checkpoint
	if at.Sequence > a.head {
		return a.otherStream(ctx, fmt.Sprintf(
			"they are at sequence %d, but the stream ends at %d", at.Sequence, a.head,
		))
	}
	if err := a.markComplete(ctx); err != nil {
		return err
	}
	if at.EventID == "" { // there is no entry whose id apply compares
		if err := a.clearStaleStop(ctx); err != nil {
			return err
		}
	}
	err := a.projection.source.Follow(
		ctx, at, func(batch []E) error { return a.apply(ctx, batch) },
	)
	var stopped *schema.StoppedError
	if errors.Is(err, schema.ErrOtherStream) && !errors.As(err, &stopped) {
		return a.otherStream(ctx, err.Error())
	}
	return err
}

// readCheckpoint reads the checkpoint of the tables and the head of the stream. It fails with
// errTakenOver if another process has taken over.
func (a *attempt[E]) readCheckpoint(ctx context.Context) error {
	_, version := a.projection.committed.Read()
	row, err := readCheckpoint(ctx, a.conn, a.projection.name, a.projection.term)
	if err != nil {
		return err
	}
	if row.Term != a.projection.term {
		return errTakenOver
	}
	at := checkpointOf(row)
	a.writer.Checkpoint, a.built = at, row.Built
	a.staleStop = row.StoppedSequence != nil && uint64(*row.StoppedSequence) <= at.Sequence
	a.projection.committed.Set(at.Sequence, version)
	if a.writer.Skipped, err = a.projection.skipped(ctx); err != nil {
		return err
	}
	if a.head, err = a.projection.source.Head(ctx, at.Sequence); err != nil {
		return err
	}
	if a.projection.name == schema.Directory {
		a.projection.cfg.BuildTarget(a.head)
	}
	return nil
}

// awaitResume waits while an operator has stopped the projection.
func (a *attempt[E]) awaitResume(ctx context.Context) error {
	for logged := false; ; {
		stops, err := a.queries.Stops(ctx)
		if err != nil {
			return err
		}
		stop, stopped := schema.StopOf(stops, schema.ProjectionOf(a.projection.name))
		switch {
		case !stopped && logged:
			a.projection.logger.Info("projection resumed by an operator")
			return nil
		case !stopped:
			return nil
		case !logged:
			a.projection.logger.Warn(
				"projection stopped by an operator until it is resumed",
				"why", stop.Why, "stopped_at", stop.StoppedAt,
			)
			logged = true
		}
		if schema.Pause(ctx, controlInterval); ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// otherStream is called when the tables were built from another stream. It returns the error that
// stops the projection, or empties the tables, and returns errMoved. It leaves tables alone whose
// checkpoint has moved: by now they may be of this stream.
func (a *attempt[E]) otherStream(ctx context.Context, reason string) error {
	at := int64(a.writer.Checkpoint.Sequence)
	from, ok := a.projection.source.(emptier)
	if !ok {
		return &schema.StoppedError{
			Projection: a.projection.name,
			Sequence:   uint64(at),
			Err: fmt.Errorf(
				"%w: %s; build them again with `hubcloud projections rebuild`",
				schema.ErrOtherStream, reason,
			),
		}
	}
	a.projection.logger.Warn("read models are of another stream; they are built again", "reason", reason)
	err := pgx.BeginFunc(ctx, a.conn, func(tx pgx.Tx) error {
		batch := &pgx.Batch{}
		a.writer.queueAdvance(batch, Header{})
		batch.Queue("UPDATE checkpoints SET built = false WHERE projection = $1", a.projection.name)
		from.Empty().Queue(batch)
		return tx.SendBatch(ctx, batch).Close()
	})
	return errors.Join(err, errMoved)
}

// clearStaleStop removes a stale stop from the database.
func (a *attempt[E]) clearStaleStop(ctx context.Context) error {
	if !a.staleStop {
		return nil
	}
	if err := a.queries.ClearStop(ctx, schema.ClearStopParams{
		Projection: a.projection.name, Term: a.projection.term,
	}); err != nil {
		return err
	}
	a.staleStop = false
	a.projection.metrics.stopped.WithLabelValues(a.projection.name).Set(0)
	return nil
}

// apply commits a batch. It fails with schema.ErrOtherStream if the batch is of another stream
// than the tables.
func (a *attempt[E]) apply(ctx context.Context, batch []E) error {
	if other, ok := a.writer.OtherStream(batch); ok {
		return a.otherStream(ctx, fmt.Sprintf(
			"event %d is %q in the stream and %q in the read models", other.Sequence, other.ID,
			a.writer.Checkpoint.EventID,
		))
	}
	if err := a.clearStaleStop(ctx); err != nil {
		return err
	}
	ctx, span := a.projection.cfg.Tracer.Start(
		ctx, "project "+a.projection.name, trace.SpanKindConsumer,
	)
	a.writer.OnCommit = a.observeCommits(ctx)
	err := a.writer.Apply(ctx, batch)
	if span.On() {
		span.Set(
			semconv.DBSystemNamePostgreSQL, semconv.MessagingBatchMessageCount(len(batch)),
			attribute.String("hubcloud.projection", a.projection.name),
			attribute.Int64("hubcloud.sequence", int64(a.writer.Checkpoint.Sequence)),
		)
	}
	span.End(err)
	if err != nil {
		return err
	}
	return a.markComplete(ctx)
}

// observeCommits returns a function that advances the position, the metrics and the log after each
// commit.
func (a *attempt[E]) observeCommits(ctx context.Context) func(entries int) {
	begun, from := time.Now(), a.writer.Checkpoint.Sequence+1
	return func(entries int) {
		took := time.Since(begun)
		name, at := schema.ProjectionOf(a.projection.name), a.writer.Checkpoint.Sequence
		a.projection.committed.Advance(at)
		a.projection.metrics.stopped.WithLabelValues(name).Set(0)
		a.projection.metrics.events.WithLabelValues(name).Add(float64(entries))
		a.projection.metrics.commits.WithLabelValues(name).Observe(took.Seconds())
		// A line for each batch adds little to the log: the events of a batch come from requests
		// and hub sessions, each of which logs a line, and under load a batch has many events.
		a.projection.logger.LogAttrs(
			ctx, slog.LevelInfo, "projection batch", slog.Uint64("from", from),
			slog.Uint64("to", at), slog.Int("events", entries),
			slog.Float64("duration_ms", float64(took.Microseconds())/1000),
		)
		begun, from = time.Now(), at+1
	}
}

// markComplete records, once, that the first build of the tables is complete. The schema becomes
// live with the last of its projections.
func (a *attempt[E]) markComplete(ctx context.Context) error {
	if a.built || a.writer.Checkpoint.Sequence < a.head {
		return nil
	}
	err := pgx.BeginFunc(ctx, a.conn, func(tx pgx.Tx) error {
		queries := schema.New(tx)
		if _, err := queries.LockSchema(ctx, a.projection.cfg.Schema); err != nil {
			return err
		}
		if err := queries.SetBuilt(ctx, schema.SetBuiltParams{
			Projection: a.projection.name, Term: a.projection.term,
		}); err != nil {
			return err
		}
		return queries.SetLive(ctx, a.projection.cfg.Schema)
	})
	if err != nil {
		return err
	}
	a.built = true
	a.projection.logger.Info(
		"projection complete", "sequence", a.writer.Checkpoint.Sequence,
		"schema", a.projection.cfg.Schema,
	)
	return nil
}
