package projector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/projections/schema"
	"hubcloud/streams/book"
	"hubcloud/streams/directory"
	"hubcloud/streams/journal"
	"hubcloud/streams/shares"
)

// Sources are the streams of the read models.
type Sources struct {
	Directory Directory          `check:"set"`
	Presence  jetstream.KeyValue `check:"set"`
	// Journal is the journals of the hub logs.
	Journal *journal.Journal `check:"set"`
	// Book is the books of organizations.
	Book *book.Log `check:"set"`
}

// Projection is a source of any type of entries.
type Projection interface {
	schema.Stream
	// Copy applies the source to the tables that conn finds, from their checkpoint on: up to Until
	// of a Copy, or until ctx ends.
	Copy(ctx context.Context, conn *pgx.Conn, c Copy) error
}

// copyInterval is devicesSource.Interval of a copy: short, since a switch waits for the last batch.
const copyInterval = 200 * time.Millisecond

// Copies returns the projections for tables beside those in use, in the order of schema.Names.
func (s Sources) Copies(logger *slog.Logger) []Projection {
	all := []Projection{
		copier[directory.Recorded]{&directorySource{Log: s.Directory}},
		copier[presenceEntry]{&PresenceSource{Bucket: s.Presence}},
	}
	kept := newKept(nil, MaxOrgChannels)
	for number := range s.Journal.Groups() {
		all = append(all, copier[journalEntry]{&devicesSource{
			Journal: s.Journal, Number: number, Interval: copyInterval,
			MaxChannels: maxChannels / s.Journal.Groups(), MaxRows: math.MaxInt,
			Turns: shares.NewTurns(nil, statesShare), Kept: kept, Logger: logger, metrics: newMetrics(nil),
		}})
	}
	return append(all, copier[book.Item]{&bookSource{s.Book}})
}

// Copy configures Projection.Copy.
type Copy struct {
	Skips Skips
	// Until is the sequence of the entry at which the copy ends: an entry of the source, or the one
	// after it if the source has replaced it; 0 for none.
	Until uint64
	// Reached is moved with each commit; nil for none.
	Reached *schema.Position
}

// errReached means that a copy has the entry at which it ends.
var errReached = errors.New("the copy has reached its end")

// copier is a Projection.
type copier[E any] struct{ Source[E] }

// Copy implements Projection.
func (p copier[E]) Copy(ctx context.Context, conn *pgx.Conn, c Copy) error {
	row, err := readCheckpoint(ctx, conn, p.Name(), 0)
	if err != nil {
		return err
	}
	w := &writer[E]{Source: p, Conn: conn, Checkpoint: checkpointOf(row)}
	if w.Skipped, err = c.Skips.Sequences(ctx, p.Name()); err != nil {
		return err
	}
	w.OnCommit = func(int) {
		if c.Reached != nil {
			c.Reached.Advance(w.Checkpoint.Sequence)
		}
	}
	w.OnCommit(0)
	for c.Until == 0 || w.Checkpoint.Sequence < c.Until {
		err := p.Follow(ctx, w.Checkpoint, func(batch []E) error { return p.apply(ctx, w, batch, c) })
		switch {
		case errors.Is(err, errReached):
			return nil
		case !errors.Is(err, errStalled) || ctx.Err() != nil:
			return err
		}
	}
	return nil
}

// apply commits a batch, up to the entry at which the copy ends.
func (p copier[E]) apply(ctx context.Context, w *writer[E], batch []E, c Copy) error {
	if c.Until == 0 {
		return w.Apply(ctx, batch)
	}
	reached := false
	for i, entry := range batch {
		h := p.Header(entry)
		if h.Expired && h.Sequence > c.Until {
			return fmt.Errorf(
				"%s: entry %d has expired: the oldest one follows %d", p.Name(), c.Until, h.Sequence,
			)
		}
		if reached = h.Sequence >= c.Until; reached {
			batch = batch[:i+1]
			break
		}
	}
	if err := w.Apply(ctx, batch); err != nil || !reached {
		return err
	}
	return errReached
}

// readCheckpoint returns the checkpoint of a projection. It makes one for a journal that is new to
// the tables, unless a projector with another term has taken over.
func readCheckpoint(
	ctx context.Context, conn *pgx.Conn, name string, term int64,
) (schema.CheckpointRow, error) {
	queries := schema.New(conn)
	row, err := queries.Checkpoint(ctx, name)
	if !errors.Is(err, pgx.ErrNoRows) {
		return row, err
	}
	const add = "INSERT INTO checkpoints (projection, term) SELECT $1, $2 " +
		"WHERE (SELECT max(term) FROM checkpoints) = $2 ON CONFLICT DO NOTHING"
	if _, err := conn.Exec(ctx, add, name, term); err != nil {
		return row, err
	}
	row, err = queries.Checkpoint(ctx, name)
	if errors.Is(err, pgx.ErrNoRows) {
		err = errTakenOver
	}
	return row, err
}

func checkpointOf(row schema.CheckpointRow) Checkpoint {
	return Checkpoint{Sequence: uint64(row.Sequence), EventID: row.EventID}
}
