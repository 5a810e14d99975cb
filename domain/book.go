package domain

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// BookKind is a kind of entries of an organization's book. Each event is of one kind, or of none.
type BookKind string

// The kinds. BookGap is what stands for events that nobody has read in time: a book with any kind has
// these entries.
const (
	BookDoors    BookKind = "doors"
	BookAlarms   BookKind = "alarms"
	BookCodes    BookKind = "codes"
	BookCommands BookKind = "commands"
	BookDevices  BookKind = "devices"
	BookHubs     BookKind = "hubs"
	BookGap      BookKind = "gap"
)

// BookKinds are the kinds that an organization can choose, in the order of pages.
func BookKinds() []BookKind {
	return []BookKind{BookDoors, BookCodes, BookAlarms, BookCommands, BookDevices, BookHubs}
}

// MaxBookDays is the longest that an organization can keep entries, and MinBookDays the shortest: the
// hub logs have a day.
const MinBookDays, MaxBookDays = 2, 365

// BookSettings are what an organization keeps of its events, and for how many days. The zero value
// keeps nothing.
type BookSettings struct {
	Kinds []BookKind `json:"kinds"`
	Days  int        `json:"days"`
}

// Book is the book of an organization.
type Book struct {
	BookSettings
	// Since is when the book was begun; zero for none. Events from before are not in it.
	Since time.Time
}

// Kept reports whether the book has entries of a kind.
func (b BookSettings) Kept(kind BookKind) bool {
	return kind == BookGap && len(b.Kinds) > 0 || slices.Contains(b.Kinds, kind)
}

// Oldest returns the time from which entries are kept.
func (b BookSettings) Oldest(now time.Time) time.Time { return now.AddDate(0, 0, -b.Days) }

// BookSet chooses what an organization keeps of its events (aggregate org). What it no longer keeps
// is deleted.
type BookSet struct {
	OrgID string `json:"org_id"`
	BookSettings
}

// String returns the settings as the activity has them.
func (b BookSettings) String() string {
	if len(b.Kinds) == 0 {
		return "nothing"
	}
	return fmt.Sprintf("%s for %d days", join(b.Kinds), b.Days)
}

// EventType returns the type of the event.
func (BookSet) EventType() string { return "org.book_set" }

// DecideSetBook chooses what an organization keeps; it returns no event if nothing changes. Errors:
// not_found, forbidden for an actor that is no owner or admin, and invalid_request.
func DecideSetBook(s OrgState, o Origin, want BookSettings) ([]Event, error) {
	if !s.Exists() {
		return nil, ErrOrgNotFound()
	}
	if err := s.mayManage(o.Actor, RoleMember); err != nil {
		return nil, err
	}
	var kinds []BookKind
	for _, kind := range BookKinds() {
		if slices.Contains(want.Kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	for _, kind := range want.Kinds {
		if !slices.Contains(kinds, kind) {
			return nil, Errorf(CodeInvalidRequest, "kinds: must be among %s, not %q", join(BookKinds()), kind)
		}
	}
	want.Kinds = kinds
	switch {
	case len(kinds) == 0:
		want.Days = 0
	case want.Days < MinBookDays || want.Days > MaxBookDays:
		return nil, Errorf(CodeInvalidRequest, "days: must be %d to %d", MinBookDays, MaxBookDays)
	}
	if slices.Equal(s.Book.Kinds, kinds) && s.Book.Days == want.Days {
		return nil, nil
	}
	return []Event{Record(o, BookSet{OrgID: s.ID, BookSettings: want})}, nil
}

// With returns the book after settings were chosen at a time.
func (b Book) With(settings BookSettings, at time.Time) Book {
	if len(b.Kinds) == 0 {
		b.Since = at
	}
	if b.BookSettings = settings; len(settings.Kinds) == 0 {
		b.Since = time.Time{}
	}
	return b
}

// BookEntry is an entry of an organization's book: an event, with the names at its time.
type BookEntry struct {
	OrgID string   `json:"org_id"`
	Kind  BookKind `json:"kind"`
	// Stored is when the event was stored, and At when it happened: the same if the hub's clock was
	// not set.
	Stored time.Time `json:"stored"`
	At     time.Time `json:"at"`
	// HubID and SiteID are empty for a gap.
	HubID  HubID  `json:"hub_id,omitempty"`
	SiteID string `json:"site_id,omitempty"`
	Site   string `json:"site,omitempty"`
	Hub    string `json:"hub,omitempty"`
	// Device is empty for an event of the hub itself.
	Device string `json:"device,omitempty"`
	// Text describes the event, and By is who caused it, with a code's label if one was known; empty
	// if nobody did, or it is not known.
	Text string `json:"text"`
	By   string `json:"by,omitempty"`
	// Event is the envelope of the event. It has no data if that would be longer than MaxBookEvent.
	Event json.RawMessage `json:"event"`
	// Position is the position of the event in the feed of its organization.
	Position string `json:"position"`
}

// MaxBookEvent is the most bytes of an event in a book.
const MaxBookEvent = 4 << 10

// BookFilter chooses entries of a book. The zero value chooses all.
type BookFilter struct {
	// SiteID and Kind choose entries of a site and of a kind.
	SiteID string
	Kind   BookKind
	// Place are words that the names of device, hub and site have. Who is a part of the text or of who
	// caused the event. Both without regard to case.
	Place, Who string
	// From and To bound the time of the entries; zero for no bound. To is exclusive.
	From, To time.Time
}

// BookPlace is the place of an entry in a book, which is ordered by time. The zero value is after the
// newest entry.
type BookPlace struct {
	At       time.Time
	Sequence uint64
}

// BookCut deletes entries of an organization's book from before a sequence: of a hub, of a kind, or
// all if both are empty.
type BookCut struct {
	OrgID  string   `json:"org_id"`
	HubID  HubID    `json:"hub_id,omitempty"`
	Kind   BookKind `json:"kind,omitempty"`
	Before uint64   `json:"before"`
}

// Deletes reports whether an entry with a sequence is deleted.
func (c BookCut) Deletes(seq uint64, e BookEntry) bool {
	return seq < c.Before && c.OrgID == e.OrgID && (c.HubID == "" || c.HubID == e.HubID) &&
		(c.Kind == "" || c.Kind == e.Kind)
}
