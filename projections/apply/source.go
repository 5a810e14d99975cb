package apply

import (
	"context"

	"hubcloud/domain"
	"hubcloud/projections/tables"
)

// Source is the stream of a projection. It turns the stream's entries, of type E, into changes of
// the tables.
type Source[E any] interface {
	// Name returns the name of the projection.
	Name() string
	// Head returns the sequence of the stream's last entry. seen is a sequence that the caller has
	// read, or 0. If the stream seems to end before seen, Head asks the stream's leader.
	Head(ctx context.Context, seen uint64) (uint64, error)
	// Follow calls fn with every entry after a sequence, in order, and with new entries as they are
	// stored. It returns the first error of fn, of the stream, or of ctx.
	Follow(ctx context.Context, after uint64, fn func(batch []E) error) error
	// Header returns what identifies an entry.
	Header(entry E) Header
	// Statements returns the statements that apply a batch to the tables. Its errors are permanent
	// (see IsPermanent).
	Statements(batch []E) ([]tables.Statement, error)
}

// Header identifies an entry of a stream.
type Header struct {
	Sequence uint64
	// Type and ID are those of the event; empty for entries that have none.
	Type, ID string
	// Err is why the entry cannot be read; nil if it can.
	Err error
}

// Skips returns the entries that operators have made a projection skip, by their sequence in its
// stream.
type Skips func(ctx context.Context, projection string) (map[uint64]domain.ProjectionSkipped, error)

// Sequences returns the sequences of the skipped entries.
func (s Skips) Sequences(ctx context.Context, projection string) (map[uint64]bool, error) {
	skips, err := s(ctx, projection)
	if err != nil {
		return nil, err
	}
	sequences := make(map[uint64]bool, len(skips))
	for seq := range skips {
		sequences[seq] = true
	}
	return sequences, nil
}
