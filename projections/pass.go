package projections

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"hubcloud/projections/internal/query"
)

// pass is one run of a line on one connection.
type pass[E any] struct {
	*line[E]
	writer  *writer[E]
	conn    *pgx.Conn
	queries *query.Queries
	// target is the stream's head when the pass began: the tables are complete from there on.
	target uint64
	built  bool
	// doubted says that the stream was found to be another one at the checkpoint, or that the read
	// models were stopped by what they have by now.
	doubted bool
}

func newPass[E any](l *line[E], conn *pgx.Conn) *pass[E] {
	p := &pass[E]{
		line:    l,
		conn:    conn,
		queries: query.New(conn),
		writer:  &writer[E]{source: l.source, conn: conn, term: l.term, heeds: true},
	}
	if l.announce {
		p.writer.announce = l.store.schema
	}
	return p
}

func (p *pass[E]) run(ctx context.Context) error {
	if err := p.awaitResume(ctx); err != nil {
		return err
	}
	_, changes := p.committed.position()
	row, err := p.queries.Checkpoint(ctx, p.source.name())
	if err != nil {
		return err
	}
	if row.Term != p.term {
		return errDeposed
	}
	p.writer.checkpoint, p.writer.eventID, p.built = uint64(row.Sequence), row.EventID, row.Built
	p.doubted = row.StoppedSequence != nil && uint64(*row.StoppedSequence) <= p.writer.checkpoint
	p.committed.set(p.writer.checkpoint, changes)
	if p.writer.skipped, err = p.skipped(ctx); err != nil {
		return err
	}
	if p.target, err = p.source.head(ctx, p.writer.checkpoint); err != nil {
		return err
	}
	if p.source.name() == DirectoryProjection {
		p.store.target.Store(p.target)
	}
	p.store.metrics.sequence.WithLabelValues(p.source.name()).Set(float64(p.writer.checkpoint))
	if p.writer.checkpoint > p.target {
		return p.otherStream(
			fmt.Sprintf(
				"they have it up to sequence %d, and it ends at %d", p.writer.checkpoint, p.target,
			),
		)
	}
	if err := p.finish(ctx); err != nil {
		return err
	}
	after := p.writer.checkpoint
	if p.writer.eventID != "" {
		after-- // the event at the checkpoint comes again, to be compared
	} else if err := p.trust(ctx); err != nil {
		return err
	}
	return p.source.follow(ctx, after, func(batch []E) error { return p.apply(ctx, batch) })
}

// awaitResume waits for as long as an operator has stopped the projection.
func (p *pass[E]) awaitResume(ctx context.Context) error {
	for told := false; ; {
		stops, err := p.queries.Stops(ctx)
		if err != nil {
			return err
		}
		stop, stopped := stopOf(stops, p.source.name())
		switch {
		case !stopped && told:
			p.log.Info("the projection goes on: an operator has resumed it")
			return nil
		case !stopped:
			return nil
		case !told:
			p.log.Warn(
				"the projection is stopped by an operator; it goes on once it is resumed",
				"why", stop.Why, "stopped_at", stop.StoppedAt,
			)
			told = true
		}
		if pause(ctx, controlEvery); ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

func (p *pass[E]) otherStream(why string) error {
	return &StoppedError{
		Projection: p.source.name(),
		Sequence:   p.writer.checkpoint,
		Err: fmt.Errorf(
			"%w: %s; build them anew with `hubcloud projections rebuild`", ErrOtherStream, why),
	}
}

// trust takes back that the stream is another one, once it turns out to be the right one again.
func (p *pass[E]) trust(ctx context.Context) error {
	if !p.doubted {
		return nil
	}
	if err := p.queries.GoOn(ctx, query.GoOnParams{
		Projection: p.source.name(), Term: p.term,
	}); err != nil {
		return err
	}
	p.doubted = false
	p.store.metrics.stopped.WithLabelValues(p.source.name()).Set(0)
	return nil
}

// apply commits a batch, unless it is another stream's.
func (p *pass[E]) apply(ctx context.Context, batch []E) error {
	if other, is := p.writer.isOther(batch); is {
		return p.otherStream(
			fmt.Sprintf(
				"its event %d is %q and theirs is %q", other.seq, other.id, p.writer.eventID,
			),
		)
	}
	if err := p.trust(ctx); err != nil {
		return err
	}
	ctx, span := p.store.tracer.Start(ctx, "project "+p.source.name(), trace.SpanKindConsumer)
	begun, from := time.Now(), p.writer.checkpoint+1
	p.writer.committed = func(entries int) {
		took := time.Since(begun)
		name, at := p.source.name(), p.writer.checkpoint
		p.committed.advance(at)
		p.store.metrics.sequence.WithLabelValues(name).Set(float64(at))
		p.store.metrics.stopped.WithLabelValues(name).Set(0)
		p.store.metrics.events.WithLabelValues(name).Add(float64(entries))
		p.store.metrics.commits.WithLabelValues(name).Observe(took.Seconds())
		p.report(ctx, from, at, entries, took)
		begun, from = time.Now(), at+1
	}
	err := p.writer.apply(ctx, batch)
	if span.On() {
		span.Set(
			semconv.DBSystemNamePostgreSQL, semconv.MessagingBatchMessageCount(len(batch)),
			attribute.String("hubcloud.projection", p.source.name()),
			attribute.Int64("hubcloud.sequence", int64(p.writer.checkpoint)),
		)
	}
	span.End(err)
	if err != nil {
		return err
	}
	return p.finish(ctx)
}

// report writes the line of a batch that was committed. There is one for each, and no fewer when
// they are many: a batch is made by what has a line itself, a request or a hub's session, and takes
// in all that has gathered meanwhile, so that under load there are fewer lines than causes.
func (p *pass[E]) report(ctx context.Context, from, to uint64, entries int, took time.Duration) {
	p.log.LogAttrs(
		ctx, slog.LevelInfo, "projection batch", slog.Uint64("from", from), slog.Uint64("to", to),
		slog.Int("events", entries), slog.Float64("duration_ms", float64(took.Microseconds())/1000),
	)
}

// finish records, once, that the tables are complete.
func (p *pass[E]) finish(ctx context.Context) error {
	if p.built || p.writer.checkpoint < p.target {
		return nil
	}
	err := pgx.BeginFunc(ctx, p.conn, func(tx pgx.Tx) error {
		queries := query.New(tx)
		if _, err := queries.LockSchema(ctx, p.store.schema); err != nil {
			return err
		}
		if err := queries.SetBuilt(ctx, query.SetBuiltParams{
			Projection: p.source.name(), Term: p.term,
		}); err != nil {
			return err
		}
		return queries.SetLive(ctx, p.store.schema)
	})
	if err != nil {
		return err
	}
	p.built = true
	p.log.Info(
		"the read models are complete", "sequence", p.writer.checkpoint, "schema", p.store.schema,
	)
	return nil
}
