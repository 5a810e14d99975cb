package client

import (
	"context"
	"iter"
	"net/http"
	"strconv"
	"time"
)

// Lag is how far the position of a page is behind.
type Lag struct {
	// EventsBehind is how many events follow the page; -1 if the service has not said so.
	EventsBehind int64
	// ExpiresIn is how long the position can still be read on from. It is set only if Endangered.
	ExpiresIn time.Duration
	// Endangered reports that less than a quarter of the retention is left.
	Endangered bool
}

// lagOf reads the headers of a page.
func lagOf(header http.Header) Lag {
	lag := Lag{EventsBehind: -1}
	if n, err := strconv.ParseInt(header.Get("Events-Behind"), 10, 64); err == nil {
		lag.EventsBehind = n
	}
	if n, err := strconv.ParseInt(header.Get("Events-Expire-In"), 10, 64); err == nil {
		lag.ExpiresIn, lag.Endangered = time.Duration(n)*time.Second, true
	}
	return lag
}

// ReaderState is how close a reader is to losing events.
type ReaderState string

// The states of readers.
const (
	// ReaderOK: the position has more than a quarter of the retention left.
	ReaderOK ReaderState = "ok"
	// ReaderEndangered: it has less.
	ReaderEndangered ReaderState = "endangered"
	// ReaderExpired: the position gets ErrCursorExpired.
	ReaderExpired ReaderState = "expired"
)

// Reader is a reader of events that names itself.
type Reader struct {
	// ID identifies the reader in the list.
	ID   string `json:"id"`
	Name string `json:"name"`
	// HubID is the hub whose events it reads; nil for the organization's feed. Part is the part of
	// the feed; nil for all of it.
	HubID *string `json:"hub_id"`
	Part  *string `json:"part"`
	// Position is the cursor or position after what it was last given.
	Position string      `json:"position"`
	State    ReaderState `json:"state"`
	// EventsBehind is how many events follow the position now; nil if it can no longer be read on
	// from.
	EventsBehind *int64 `json:"events_behind"`
	// SecondsBehind is how old the position is, 0 if no event follows it. ExpiresIn is in how many
	// seconds it can no longer be read on from.
	SecondsBehind int64     `json:"seconds_behind"`
	ExpiresIn     int64     `json:"expires_in"`
	LastSeenAt    time.Time `json:"last_seen_at"`
}

// Readers lists the readers of events that name themselves, by name. Scope events:read.
func (c *Client) Readers(ctx context.Context) iter.Seq2[Reader, error] {
	return all(func(after string) (Page[Reader], error) {
		return c.ReadersPage(ctx, PageQuery{StartingAfter: after})
	}, func(r Reader) string { return r.ID })
}

// ReadersPage reads one page of the list of readers. Scope events:read.
func (c *Client) ReadersPage(ctx context.Context, query PageQuery) (Page[Reader], error) {
	return page[Reader](ctx, c, "/readers", query.values())
}
