package projector

import (
	"context"
	_ "embed"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"hubcloud/projections/schema"
	"hubcloud/streams/book"
)

//go:embed sql/cut_book.sql
var cutBook string

// bookSource is the Source of the projection schema.Book.
type bookSource struct{ Log *book.Log }

// Name implements schema.Stream.
func (b *bookSource) Name() string { return schema.Book }

// Head implements schema.Stream.
func (b *bookSource) Head(ctx context.Context, seen uint64) (uint64, error) {
	return b.Log.Head(ctx, seen)
}

// StoredAt implements schema.Stream.
func (b *bookSource) StoredAt(ctx context.Context, seq uint64) (time.Time, bool, error) {
	return b.Log.StoredAt(ctx, seq)
}

// Follow implements Source. It begins with the entry of the checkpoint, if that was not deleted.
func (b *bookSource) Follow(ctx context.Context, at Checkpoint, fn func([]book.Item) error) error {
	return b.Log.Follow(ctx, max(at.Sequence, 1)-1, func(items []book.Item) error {
		first := items[0]
		if first.Seq <= at.Sequence && first.Entry == nil && first.Cut == nil {
			items = items[1:]
		}
		if len(items) == 0 {
			return nil
		}
		return fn(items)
	})
}

// Header implements Source.
func (b *bookSource) Header(item book.Item) Header {
	h := Header{Sequence: item.Seq, Type: "book", Err: item.Err}
	switch {
	case item.Entry != nil:
		h.ID = item.Entry.Position
	case item.Cut != nil:
		h.ID = "cut/" + strconv.FormatUint(item.Cut.Before, 10)
	}
	return h
}

// Permanent implements Source.
func (b *bookSource) Permanent(err error) bool { return IsPermanent(err) }

// Empty implements emptier: the stream is another one after a restore from a backup.
func (b *bookSource) Empty() schema.Statement {
	return schema.Statement{What: "delete the entries of other books", SQL: "DELETE FROM book", Rows: schema.AnyRows}
}

// Statements implements Source. Entries that the batch cuts again are not written.
func (b *bookSource) Statements(
	_ context.Context, _ *pgx.Conn, batch []book.Item,
) ([]schema.Statement, error) {
	var rows []schema.BookRow
	all := statements{withoutDisk}
	for _, item := range batch {
		switch {
		case item.Entry != nil:
			text, err := json.Marshal(item.Entry)
			if err != nil {
				return nil, err
			}
			rows = append(rows, schema.BookRow{
				Seq: item.Seq, BookEntry: *item.Entry, JSON: schema.StorableText(string(text)),
			})
		case item.Cut != nil:
			c := *item.Cut
			rows = slices.DeleteFunc(rows, func(r schema.BookRow) bool { return c.Deletes(r.Seq, r.BookEntry) })
			all.add(schema.Statement{
				What: "delete from a book", SQL: cutBook, Rows: schema.AnyRows,
				Args: func() []any {
					return []any{c.OrgID, int64(c.Before), string(c.HubID), string(c.Kind)}
				},
			})
		}
	}
	all.add(schema.Books.Insert(rows))
	return all, nil
}

// HasEntry reports whether the stream of the books still has an entry of the read models.
func (s Sources) HasEntry(ctx context.Context, seq string) (bool, error) {
	n, err := strconv.ParseUint(seq, 10, 64)
	if err != nil {
		return false, err
	}
	return s.Book.Has(ctx, n)
}

var _ Source[book.Item] = (*bookSource)(nil)
