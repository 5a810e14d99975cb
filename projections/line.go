package projections

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"

	"hubcloud/projections/internal/query"
)

const (
	// retryStopped is how long a stopped projection waits before it tries its event again.
	retryStopped = 10 * time.Second
	// commitLimit bounds one batch's transaction: a database that does not answer is left and connected to anew.
	commitLimit = 30 * time.Second
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
	head(ctx context.Context) (uint64, error)
	// follow gives every entry after a sequence, in order, and new ones as they come. It ends with fn's error or with ctx's.
	follow(ctx context.Context, after uint64, fn func(batch []E) error) error
	mark(entry E) mark
	// statements gives what a batch does to the tables, or an error that isPermanent.
	statements(batch []E) ([]statement, error)
}

// line runs one projection: from its checkpoint on, batch by batch, each in one transaction with the checkpoint.
type line[E any] struct {
	store  *Store
	source source[E]
	log    *slog.Logger
	// committed is told of every commit.
	committed *progress
	// announce says that other processes are told too.
	announce bool
}

// run projects until ctx ends, whatever happens on the way. It returns nil then, and an error only when the broker's connection
// was closed for good.
func (l *line[E]) run(ctx context.Context) error {
	wait := firstRetry
	for {
		begun := time.Now()
		err := l.store.with(ctx, func(conn *pgx.Conn) error {
			return (&pass[E]{line: l, conn: conn, queries: query.New(conn)}).run(ctx)
		})
		var stopped *StoppedError
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, nats.ErrConnectionClosed):
			return fmt.Errorf("projection %s: %w", l.source.name(), err)
		case errors.As(err, &stopped):
			l.stop(ctx, stopped)
			pause(ctx, l.store.retryStopped)
			continue
		}
		if time.Since(begun) > lastRetry {
			wait = firstRetry
		}
		l.log.Warn("the projection was interrupted; going on from its checkpoint", "error", err, "wait_ms", wait.Milliseconds())
		pause(ctx, wait)
		wait = min(2*wait, lastRetry)
	}
}

// stop tells everybody that the line stands still, and why.
func (l *line[E]) stop(ctx context.Context, stopped *StoppedError) {
	l.store.metrics.stopped.WithLabelValues(l.source.name()).Set(1)
	l.log.Error("the projection is stopped; it is tried again, and goes on once a program that understands the event runs",
		"sequence", stopped.Sequence, "event_type", stopped.Type, "error", stopped.Err, "retry_ms", l.store.retryStopped.Milliseconds())
	sequence, reason := int64(stopped.Sequence), storable(stopped.Err.Error())
	kind := storable(stopped.Type)
	telling, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	err := l.store.with(telling, func(conn *pgx.Conn) error {
		return query.New(conn).Stop(telling, query.StopParams{
			Projection: l.source.name(), Sequence: &sequence, Type: &kind, Error: &reason,
		})
	})
	if err != nil {
		l.log.Warn("cannot record that the projection is stopped", "error", err)
	}
}

// pass is one run of a line on one connection.
type pass[E any] struct {
	*line[E]
	conn       *pgx.Conn
	queries    *query.Queries
	checkpoint uint64
	eventID    string
	// target is the stream's head when the pass began: the tables are complete from there on.
	target uint64
	built  bool
	// doubted says that the stream was found to be another one at the checkpoint.
	doubted bool
}

func (p *pass[E]) run(ctx context.Context) error {
	_, changes := p.committed.position()
	row, err := p.queries.Checkpoint(ctx, p.source.name())
	if err != nil {
		return err
	}
	p.checkpoint, p.eventID, p.built = uint64(row.Sequence), row.EventID, row.Built
	p.doubted = row.StoppedSequence != nil && uint64(*row.StoppedSequence) == p.checkpoint
	p.committed.set(p.checkpoint, changes)
	if p.target, err = p.source.head(ctx); err != nil {
		return err
	}
	p.store.metrics.sequence.WithLabelValues(p.source.name()).Set(float64(p.checkpoint))
	if p.checkpoint > p.target {
		return p.otherStream(fmt.Sprintf("they have it up to sequence %d, and it ends at %d", p.checkpoint, p.target))
	}
	if err := p.finish(ctx); err != nil {
		return err
	}
	after := p.checkpoint
	if p.eventID != "" {
		after-- // the event at the checkpoint comes again, to be compared
	} else if err := p.trust(ctx); err != nil {
		return err
	}
	return p.source.follow(ctx, after, func(batch []E) error { return p.apply(ctx, batch) })
}

func (p *pass[E]) otherStream(why string) error {
	return &StoppedError{Projection: p.source.name(), Sequence: p.checkpoint, Err: fmt.Errorf(
		"%w: %s; drop the schema %s (DROP SCHEMA %s CASCADE) and start again: it is built anew from the streams",
		ErrOtherStream, why, p.store.schema, p.store.schema)}
}

// trust takes back that the stream is another one, once it turns out to be the right one again.
func (p *pass[E]) trust(ctx context.Context) error {
	if !p.doubted {
		return nil
	}
	if err := p.queries.GoOn(ctx, p.source.name()); err != nil {
		return err
	}
	p.doubted = false
	p.store.metrics.stopped.WithLabelValues(p.source.name()).Set(0)
	return nil
}

// apply commits the entries of a batch up to the first that cannot be read or applied. If there is one, its StoppedError is the
// answer.
func (p *pass[E]) apply(ctx context.Context, batch []E) error {
	good, stopped := p.sift(batch)
	if !errors.Is(stopped, ErrOtherStream) {
		if err := p.trust(ctx); err != nil {
			return err
		}
	}
	if len(good) > 0 {
		err := p.commit(ctx, good)
		if isPermanent(err) {
			err = p.commitEach(ctx, good)
		}
		if err != nil {
			return err
		}
	}
	if stopped != nil {
		return stopped
	}
	return nil
}

// sift leaves out what the tables have, and cuts the batch at an entry that cannot be read.
func (p *pass[E]) sift(batch []E) (good []E, stopped error) {
	for len(batch) > 0 {
		at := p.source.mark(batch[0])
		if at.seq > p.checkpoint {
			break
		}
		if at.seq == p.checkpoint && at.id != p.eventID && p.eventID != "" {
			return nil, p.otherStream(fmt.Sprintf("its event %d is %q and theirs is %q", at.seq, at.id, p.eventID))
		}
		batch = batch[1:]
	}
	for i, entry := range batch {
		if at := p.source.mark(entry); at.err != nil {
			return batch[:i], &StoppedError{Projection: p.source.name(), Sequence: at.seq, Type: at.kind, Err: at.err}
		}
	}
	return batch, nil
}

// commitEach commits entry by entry, to find the one that cannot be applied and to commit what comes before it.
func (p *pass[E]) commitEach(ctx context.Context, batch []E) error {
	for i, entry := range batch {
		if err := p.commit(ctx, batch[i:i+1]); isPermanent(err) {
			at := p.source.mark(entry)
			return &StoppedError{Projection: p.source.name(), Sequence: at.seq, Type: at.kind, Err: err}
		} else if err != nil {
			return err
		}
	}
	return nil
}

// commit writes a batch and the checkpoint in one transaction.
func (p *pass[E]) commit(ctx context.Context, batch []E) error {
	begun := time.Now()
	statements, err := p.source.statements(batch)
	if err != nil {
		return err
	}
	last := p.source.mark(batch[len(batch)-1])
	ctx, cancel := context.WithTimeout(ctx, commitLimit)
	defer cancel()
	err = pgx.BeginFunc(ctx, p.conn, func(tx pgx.Tx) error {
		pipeline := &pgx.Batch{}
		for _, statement := range statements {
			statement.queue(pipeline)
		}
		if p.announce {
			pipeline.Queue("SELECT pg_notify($1, $2)", p.store.schema, strconv.FormatUint(last.seq, 10))
		}
		if err := tx.SendBatch(ctx, pipeline).Close(); err != nil {
			return err
		}
		moved, err := query.New(tx).Advance(ctx, query.AdvanceParams{
			Projection: p.source.name(), Expected: int64(p.checkpoint), Sequence: int64(last.seq), EventID: last.id,
		})
		if err == nil && moved == 0 {
			err = errMoved
		}
		return err
	})
	if err != nil {
		return err
	}
	p.checkpoint, p.eventID = last.seq, last.id
	p.committed.advance(last.seq)
	name := p.source.name()
	p.store.metrics.sequence.WithLabelValues(name).Set(float64(last.seq))
	p.store.metrics.stopped.WithLabelValues(name).Set(0)
	p.store.metrics.events.WithLabelValues(name).Add(float64(len(batch)))
	p.store.metrics.commits.WithLabelValues(name).Observe(time.Since(begun).Seconds())
	return p.finish(ctx)
}

// finish records, once, that the tables are complete.
func (p *pass[E]) finish(ctx context.Context) error {
	if p.built || p.checkpoint < p.target {
		return nil
	}
	err := pgx.BeginFunc(ctx, p.conn, func(tx pgx.Tx) error {
		queries := query.New(tx)
		if _, err := queries.LockSchema(ctx, p.store.schema); err != nil {
			return err
		}
		if err := queries.SetBuilt(ctx, p.source.name()); err != nil {
			return err
		}
		return queries.SetLive(ctx, p.store.schema)
	})
	if err != nil {
		return err
	}
	p.built = true
	p.log.Info("the read models are complete", "sequence", p.checkpoint, "schema", p.store.schema)
	return nil
}
