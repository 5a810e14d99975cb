package projections

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"hubcloud/projections/internal/query"
)

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
