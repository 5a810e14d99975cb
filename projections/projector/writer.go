package projector

import (
	"context"
	_ "embed"
	"strconv"

	"github.com/jackc/pgx/v5"

	"hubcloud/projections/schema"
)

//go:embed sql/advance_checkpoint.sql
var advanceCheckpoint string

// withoutDisk makes the commit of a transaction not wait for the disk: after a crash of the server
// the projection goes on from the checkpoint that the database has.
var withoutDisk = schema.Statement{
	What: "commit without waiting for the disk", Rows: schema.AnyRows,
	SQL: "SET LOCAL synchronous_commit = off",
}

// writer writes the entries of a stream into the tables that its connection finds. It is used by
// one goroutine at a time.
type writer[E any] struct {
	Source Source[E]
	Conn   *pgx.Conn
	// Checkpoint is the last entry in the tables; Apply moves it.
	Checkpoint Checkpoint
	// Skipped are the sequences of the entries that Apply must skip.
	Skipped map[uint64]bool
	// Term is the term of the projector that writes; 0 for tables that no projector writes.
	Term int64
	// RespectStops makes Apply fail with errMoved while an operator has stopped the projection.
	RespectStops bool
	// NotifyChannel is the channel on which each commit is announced; empty for none.
	NotifyChannel string
	// OnCommit is called after each commit with the number of its entries; nil for none.
	OnCommit func(entries int)
}

// Apply commits the entries of a batch that are after the checkpoint, up to the first that cannot
// be read or applied. It returns a *schema.StoppedError for that entry. With an empty batch it
// commits what a deferring source has deferred.
func (w *writer[E]) Apply(ctx context.Context, batch []E) error {
	readable, stopped := w.readablePrefix(batch)
	if len(readable) > 0 || len(batch) == 0 {
		err := w.commit(ctx, readable)
		if w.Source.Permanent(err) {
			err = w.commitEach(ctx, readable)
		}
		if err != nil {
			return err
		}
	}
	return stopped
}

// readablePrefix returns the entries after the checkpoint, up to the first that cannot be read and
// is not skipped, and the error about that entry.
func (w *writer[E]) readablePrefix(batch []E) (readable []E, stopped error) {
	for len(batch) > 0 && w.Source.Header(batch[0]).Sequence <= w.Checkpoint.Sequence {
		batch = batch[1:]
	}
	for i, entry := range batch {
		if h := w.Source.Header(entry); h.Err != nil && !w.Skipped[h.Sequence] {
			return batch[:i], w.stoppedAt(h, h.Err)
		}
	}
	return batch, nil
}

func (w *writer[E]) stoppedAt(h Header, err error) *schema.StoppedError {
	return &schema.StoppedError{
		Projection: w.Source.Name(), Sequence: h.Sequence, Type: h.Type, Err: err,
	}
}

// commitEach commits entry by entry, up to the first that cannot be applied. It returns a
// *schema.StoppedError for that entry.
func (w *writer[E]) commitEach(ctx context.Context, batch []E) error {
	for i, entry := range batch {
		if err := w.commit(ctx, batch[i:i+1]); w.Source.Permanent(err) {
			return w.stoppedAt(w.Source.Header(entry), err)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// commit writes a batch and the checkpoint in one transaction.
func (w *writer[E]) commit(ctx context.Context, batch []E) error {
	ctx, cancel := context.WithTimeout(ctx, schema.CommitTimeout)
	defer cancel()
	statements, err := w.Source.Statements(ctx, w.Conn, w.withoutSkipped(batch))
	if err != nil {
		return err
	}
	var last Header
	if source, ok := w.Source.(deferring); ok {
		last = source.Reached()
	} else {
		last = w.Source.Header(batch[len(batch)-1])
	}
	err = pgx.BeginFunc(ctx, w.Conn, func(tx pgx.Tx) error {
		pipeline := &pgx.Batch{}
		w.queueAdvance(pipeline, last)
		for _, statement := range statements {
			statement.Queue(pipeline)
		}
		if w.NotifyChannel != "" {
			pipeline.Queue(
				"SELECT pg_notify($1, $2)", w.NotifyChannel, strconv.FormatUint(last.Sequence, 10),
			)
		}
		return tx.SendBatch(ctx, pipeline).Close()
	})
	if err != nil {
		return err
	}
	w.Checkpoint = Checkpoint{last.Sequence, last.ID}
	if w.OnCommit != nil {
		w.OnCommit(len(batch))
	}
	return nil
}

// queueAdvance queues the move of the checkpoint to an entry.
func (w *writer[E]) queueAdvance(pipeline *pgx.Batch, to Header) {
	pipeline.Queue(
		advanceCheckpoint, w.Source.Name(), int64(w.Checkpoint.Sequence), int64(to.Sequence), to.ID,
		w.RespectStops, w.Term,
	).Query(func(rows pgx.Rows) error {
		rows.Close()
		if err := rows.Err(); err != nil {
			return err
		}
		if rows.CommandTag().RowsAffected() == 0 {
			return errMoved
		}
		return nil
	})
}

func (w *writer[E]) withoutSkipped(batch []E) []E {
	if len(w.Skipped) == 0 {
		return batch
	}
	kept := make([]E, 0, len(batch))
	for _, entry := range batch {
		if !w.Skipped[w.Source.Header(entry).Sequence] {
			kept = append(kept, entry)
		}
	}
	return kept
}

// OtherStream reports whether the entry at the checkpoint is in the batch with another id: the
// tables were built from another stream. It returns the header of that entry.
func (w *writer[E]) OtherStream(batch []E) (Header, bool) {
	for _, entry := range batch {
		h := w.Source.Header(entry)
		if h.Sequence > w.Checkpoint.Sequence {
			break
		}
		if h.Sequence == w.Checkpoint.Sequence && w.Checkpoint.EventID != "" &&
			h.ID != w.Checkpoint.EventID {
			return h, true
		}
	}
	return Header{}, false
}
