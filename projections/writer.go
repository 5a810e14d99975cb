package projections

import (
	"context"
	"strconv"

	"github.com/jackc/pgx/v5"
)

// writer writes a stream's entries into the tables of the schema that its connection's search path
// names.
type writer[E any] struct {
	source source[E]
	conn   *pgx.Conn
	// checkpoint and eventID are where the tables stand.
	checkpoint uint64
	eventID    string
	// skipped are the entries that an operator has it step over.
	skipped map[uint64]bool
	// term is that of the projector that writes; 0 where none has ever projected.
	term int64
	// heeds says that an operator's stop holds it up.
	heeds bool
	// announce is the channel on which other processes are told of each commit; empty when nobody
	// is.
	announce string
	// committed is told of every commit, and how many entries it had; nil when nobody is.
	committed func(entries int)
}

// apply commits the entries of a batch up to the first that cannot be read or applied. If there is
// one, its StoppedError is the answer.
func (w *writer[E]) apply(ctx context.Context, batch []E) error {
	good, stopped := w.sift(batch)
	if len(good) > 0 {
		err := w.commit(ctx, good)
		if isPermanent(err) {
			err = w.commitEach(ctx, good)
		}
		if err != nil {
			return err
		}
	}
	return stopped
}

// sift leaves out what the tables have, and cuts the batch at an entry that cannot be read and is
// not skipped.
func (w *writer[E]) sift(batch []E) (good []E, stopped error) {
	for len(batch) > 0 && w.source.mark(batch[0]).seq <= w.checkpoint {
		batch = batch[1:]
	}
	for i, entry := range batch {
		if at := w.source.mark(entry); at.err != nil && !w.skipped[at.seq] {
			return batch[:i], &StoppedError{
				Projection: w.source.name(),
				Sequence:   at.seq,
				Type:       at.kind,
				Err:        at.err,
			}
		}
	}
	return batch, nil
}

// commitEach commits entry by entry, to find the one that cannot be applied and to commit what
// comes before it.
func (w *writer[E]) commitEach(ctx context.Context, batch []E) error {
	for i, entry := range batch {
		if err := w.commit(ctx, batch[i:i+1]); isPermanent(err) {
			at := w.source.mark(entry)
			return &StoppedError{
				Projection: w.source.name(),
				Sequence:   at.seq,
				Type:       at.kind,
				Err:        err,
			}
		} else if err != nil {
			return err
		}
	}
	return nil
}

// commit writes a batch and the checkpoint in one transaction.
func (w *writer[E]) commit(ctx context.Context, batch []E) error {
	statements, err := w.source.statements(w.heeded(batch))
	if err != nil {
		return err
	}
	last := w.source.mark(batch[len(batch)-1])
	ctx, cancel := context.WithTimeout(ctx, commitLimit)
	defer cancel()
	err = pgx.BeginFunc(ctx, w.conn, func(tx pgx.Tx) error {
		pipeline := &pgx.Batch{}
		pipeline.Queue(advance, w.source.name(), int64(w.checkpoint), int64(last.seq), last.id, w.heeds, w.term).
			Query(func(rows pgx.Rows) error {
				rows.Close()
				if err := rows.Err(); err != nil {
					return err
				}
				if rows.CommandTag().RowsAffected() == 0 {
					return errMoved
				}
				return nil
			})
		for _, statement := range statements {
			statement.queue(pipeline)
		}
		if w.announce != "" {
			pipeline.Queue("SELECT pg_notify($1, $2)", w.announce, strconv.FormatUint(last.seq, 10))
		}
		return tx.SendBatch(ctx, pipeline).Close()
	})
	if err != nil {
		return err
	}
	w.checkpoint, w.eventID = last.seq, last.id
	if w.committed != nil {
		w.committed(len(batch))
	}
	return nil
}

// heeded leaves out what is skipped.
func (w *writer[E]) heeded(batch []E) []E {
	if len(w.skipped) == 0 {
		return batch
	}
	kept := make([]E, 0, len(batch))
	for _, entry := range batch {
		if !w.skipped[w.source.mark(entry).seq] {
			kept = append(kept, entry)
		}
	}
	return kept
}

// isOther says that the stream is not the one that the tables were built from: the entry at the
// checkpoint is another one.
func (w *writer[E]) isOther(batch []E) (mark, bool) {
	for _, entry := range batch {
		at := w.source.mark(entry)
		if at.seq > w.checkpoint {
			break
		}
		if at.seq == w.checkpoint && at.id != w.eventID && w.eventID != "" {
			return at, true
		}
	}
	return mark{}, false
}
