package schema

import (
	"strings"
	"time"

	"hubcloud/domain"
)

// BookRow is a row of Books.
type BookRow struct {
	Seq uint64
	domain.BookEntry
	// JSON is the entry as it is stored.
	JSON string
}

// Books has the entries of the books of organizations.
var Books = newTable(
	Definition{Name: "book", Projection: Book, Key: []string{"seq"}},
	[]column[BookRow]{
		number("seq", func(r *BookRow) uint64 { return r.Seq }),
		text("org_id", func(r *BookRow) string { return StorableText(r.OrgID) }),
		text("hub_id", func(r *BookRow) string { return StorableText(string(r.HubID)) }),
		text("kind", func(r *BookRow) string { return StorableText(string(r.Kind)) }),
		text("site_id", func(r *BookRow) string { return StorableText(r.SiteID) }),
		timestamp("at", func(r *BookRow) time.Time { return r.At }),
		text("place", func(r *BookRow) string {
			return StorableText(strings.ToLower(r.Device + " " + r.Hub + " " + r.Site))
		}),
		text("what", func(r *BookRow) string { return StorableText(strings.ToLower(r.By + " " + r.BookEntry.Text)) }),
		text("entry", func(r *BookRow) string { return r.JSON }),
	},
)
