package projector

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"hubcloud/projections"
	"hubcloud/projections/apply"
	"hubcloud/projections/database"
	"hubcloud/projections/internal/query"
	"hubcloud/projections/status"
)

// run is one run of a projection, on one connection.
type run[E any] struct {
	*projection[E]
	writer  *apply.Writer[E]
	conn    *pgx.Conn
	queries *query.Queries
	// goal is the stream's head when the run began: the tables are complete from there on.
	goal uint64
	// built means that the tables have been complete.
	built bool
	// staleStop means that the recorded stop is about an event that the tables have, or about
	// another stream. The first sign that the stream is the right one clears it.
	staleStop bool
}

func newRun[E any](p *projection[E], conn *pgx.Conn) *run[E] {
	return &run[E]{
		projection: p, conn: conn, queries: query.New(conn),
		writer: &apply.Writer[E]{
			Source: p.source, Conn: conn, Term: p.term, RespectStops: true,
			NotifyChannel: p.notifyChannel,
		},
	}
}

func (r *run[E]) run(ctx context.Context) error {
	if err := r.awaitResume(ctx); err != nil {
		return err
	}
	if err := r.readCheckpoint(ctx); err != nil {
		return err
	}
	at := r.writer.Checkpoint
	if at.Sequence > r.goal {
		return r.otherStream(fmt.Sprintf(
			"they are at sequence %d, but the stream ends at %d", at.Sequence, r.goal,
		))
	}
	if err := r.markComplete(ctx); err != nil {
		return err
	}
	after := at.Sequence
	if at.EventID != "" {
		after-- // the event at the checkpoint comes again, to be compared
	} else if err := r.clearStaleStop(ctx); err != nil {
		return err
	}
	return r.source.Follow(ctx, after, func(batch []E) error { return r.apply(ctx, batch) })
}

// readCheckpoint reads where the tables are, and where the stream ends. It fails with errDeposed if
// another process has taken over.
func (r *run[E]) readCheckpoint(ctx context.Context) error {
	_, version := r.committed.Read()
	row, err := r.queries.Checkpoint(ctx, r.source.Name())
	if err != nil {
		return err
	}
	if row.Term != r.term {
		return errDeposed
	}
	at := apply.Checkpoint{Sequence: uint64(row.Sequence), EventID: row.EventID}
	r.writer.Checkpoint, r.built = at, row.Built
	r.staleStop = row.StoppedSequence != nil && uint64(*row.StoppedSequence) <= at.Sequence
	r.committed.Set(at.Sequence, version)
	if r.writer.Skipped, err = r.skipped(ctx); err != nil {
		return err
	}
	if r.goal, err = r.source.Head(ctx, at.Sequence); err != nil {
		return err
	}
	if r.source.Name() == projections.Directory {
		r.cfg.Store.SetBuildTarget(r.goal)
	}
	r.metrics.sequence.WithLabelValues(r.source.Name()).Set(float64(at.Sequence))
	return nil
}

// awaitResume waits while an operator has stopped the projection.
func (r *run[E]) awaitResume(ctx context.Context) error {
	for logged := false; ; {
		stops, err := r.queries.Stops(ctx)
		if err != nil {
			return err
		}
		stop, stopped := status.StopOf(stops, r.source.Name())
		switch {
		case !stopped && logged:
			r.logger.Info("projection resumed by an operator")
			return nil
		case !stopped:
			return nil
		case !logged:
			r.logger.Warn(
				"projection stopped by an operator until it is resumed",
				"why", stop.Why, "stopped_at", stop.StoppedAt,
			)
			logged = true
		}
		if database.Pause(ctx, controlInterval); ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

func (r *run[E]) otherStream(reason string) error {
	return &projections.StoppedError{
		Projection: r.source.Name(),
		Sequence:   r.writer.Checkpoint.Sequence,
		Err: fmt.Errorf(
			"%w: %s; build them again with `hubcloud projections rebuild`",
			projections.ErrOtherStream, reason,
		),
	}
}

// clearStaleStop removes a recorded stop that is stale.
func (r *run[E]) clearStaleStop(ctx context.Context) error {
	if !r.staleStop {
		return nil
	}
	if err := r.queries.ClearStop(ctx, query.ClearStopParams{
		Projection: r.source.Name(), Term: r.term,
	}); err != nil {
		return err
	}
	r.staleStop = false
	r.metrics.stopped.WithLabelValues(r.source.Name()).Set(0)
	return nil
}

// apply commits a batch. It fails with projections.ErrOtherStream if the batch is of another stream
// than the tables.
func (r *run[E]) apply(ctx context.Context, batch []E) error {
	if other, is := r.writer.OtherStream(batch); is {
		return r.otherStream(fmt.Sprintf(
			"event %d is %q in the stream and %q in the read models", other.Sequence, other.ID,
			r.writer.Checkpoint.EventID,
		))
	}
	if err := r.clearStaleStop(ctx); err != nil {
		return err
	}
	ctx, span := r.cfg.Tracer.Start(ctx, "project "+r.source.Name(), trace.SpanKindConsumer)
	r.writer.OnCommit = r.observeCommits(ctx)
	err := r.writer.Apply(ctx, batch)
	if span.On() {
		span.Set(
			semconv.DBSystemNamePostgreSQL, semconv.MessagingBatchMessageCount(len(batch)),
			attribute.String("hubcloud.projection", r.source.Name()),
			attribute.Int64("hubcloud.sequence", int64(r.writer.Checkpoint.Sequence)),
		)
	}
	span.End(err)
	if err != nil {
		return err
	}
	return r.markComplete(ctx)
}

// observeCommits returns a function that advances the position, the metrics and the log after each
// commit.
func (r *run[E]) observeCommits(ctx context.Context) func(entries int) {
	begun, from := time.Now(), r.writer.Checkpoint.Sequence+1
	return func(entries int) {
		took := time.Since(begun)
		name, at := r.source.Name(), r.writer.Checkpoint.Sequence
		r.committed.Advance(at)
		r.metrics.sequence.WithLabelValues(name).Set(float64(at))
		r.metrics.stopped.WithLabelValues(name).Set(0)
		r.metrics.events.WithLabelValues(name).Add(float64(entries))
		r.metrics.commits.WithLabelValues(name).Observe(took.Seconds())
		// One line a batch is never more than the requests and sessions behind it, which have a
		// line each: under load a batch takes in everything that has gathered.
		r.logger.LogAttrs(
			ctx, slog.LevelInfo, "projection batch", slog.Uint64("from", from),
			slog.Uint64("to", at), slog.Int("events", entries),
			slog.Float64("duration_ms", float64(took.Microseconds())/1000),
		)
		begun, from = time.Now(), at+1
	}
}

// markComplete records, once, that the tables have reached the goal. The schema is live when all
// projections have.
func (r *run[E]) markComplete(ctx context.Context) error {
	if r.built || r.writer.Checkpoint.Sequence < r.goal {
		return nil
	}
	err := pgx.BeginFunc(ctx, r.conn, func(tx pgx.Tx) error {
		queries := query.New(tx)
		if _, err := queries.LockSchema(ctx, r.schema); err != nil {
			return err
		}
		if err := queries.SetBuilt(ctx, query.SetBuiltParams{
			Projection: r.source.Name(), Term: r.term,
		}); err != nil {
			return err
		}
		return queries.SetLive(ctx, r.schema)
	})
	if err != nil {
		return err
	}
	r.built = true
	r.logger.Info(
		"projection complete", "sequence", r.writer.Checkpoint.Sequence, "schema", r.schema,
	)
	return nil
}
