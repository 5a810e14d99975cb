package projector

import (
	"context"

	"github.com/jackc/pgx/v5"

	"hubcloud/projections/schema"
)

// Source is the stream of a projection. It turns the stream's entries, of type E, into changes of
// the tables. It is used by one projection at a time.
type Source[E any] interface {
	schema.Stream
	// Follow calls fn with every entry after a checkpoint, in order, and with new entries as they
	// are stored. It begins with the entry at the checkpoint if that has an id. It returns the
	// first error of fn, of the stream, or of ctx, and one that wraps schema.ErrOtherStream if the
	// checkpoint is not of this stream.
	Follow(ctx context.Context, at Checkpoint, fn func(batch []E) error) error
	// Header returns what identifies an entry.
	Header(entry E) Header
	// Statements returns the statements that apply a batch to the tables, which conn finds. The batch
	// is empty only if Follow has passed an empty one.
	Statements(ctx context.Context, conn *pgx.Conn, batch []E) ([]schema.Statement, error)
	// Permanent reports whether an error of Statements, or of a statement, comes from an entry,
	// which stops the projection: another try would fail too.
	Permanent(err error) bool
}

// emptier is a Source whose tables are emptied and built again if they are of another stream. Those
// of other sources stay as they are, and their projection stops.
type emptier interface {
	// Empty returns the statement that empties the tables.
	Empty() schema.Statement
}

// deferring is a Source that applies a part of what it got, and the rest with later batches.
type deferring interface {
	// Reached returns the header of the last entry up to which everything is applied.
	Reached() Header
}

// Header identifies an entry of a stream.
type Header struct {
	Sequence uint64
	// Type and ID are the event's; empty for entries that have none.
	Type, ID string
	// Err is why the entry cannot be read; nil if it can.
	Err error
	// Expired means that the entry stands for all up to Sequence that have expired unread.
	Expired bool
}

// Checkpoint is the last entry that is in the tables.
type Checkpoint struct {
	Sequence uint64
	// EventID is the entry's id; empty if entries have no ids or the id is not known.
	EventID string
}
