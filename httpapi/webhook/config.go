package webhook

import (
	"cmp"
	"context"
	"iter"
	"log/slog"
	"net/http"
	"time"
)

// Event is an event of a feed.
type Event struct {
	HubID, Cursor, Type string
	// Position is the feed's position after the event; "" if the feed has none there.
	Position string
	// Body is the event as it is posted.
	Body []byte
}

// Feed yields the events after a position. onPosition is called with positions that are not an
// event's. The first error ends the feed.
type Feed func(
	ctx context.Context, after string, onPosition func(position string),
) iter.Seq2[Event, error]

const (
	// saveEvery is the shortest time between two saved positions.
	saveEvery = time.Second
	// minBackoff and maxBackoff bound the wait before an event is posted again, which doubles with
	// each attempt and is randomized over its upper half.
	minBackoff, maxBackoff = 500 * time.Millisecond, time.Minute
	// grace is how long requests under way may take once the forwarder is stopped.
	grace = 5 * time.Second
)

// ForwarderConfig configures a Forwarder. Receiver, Feed and Logger are required.
type ForwarderConfig struct {
	// Receiver is where the events are posted to. Its Transport defaults to one that keeps as many
	// connections as requests may be under way.
	Receiver Config
	// Feed is where events come from.
	Feed Feed
	// Position is where to begin; "" is the oldest stored event.
	Position string
	// Batch posts up to 100 events of a hub in one request.
	Batch bool
	// Skip has cursors of events that are not posted.
	Skip []string
	// Save stores the position before which every event was delivered. It is called when the
	// position has changed, at most once in saveEvery, and at the end. A nil Save stores nothing.
	Save func(position string) error
	// Logger receives failed deliveries, pauses and progress.
	Logger *slog.Logger

	// maxRequests is the most requests under way for all hubs. Defaults to 64.
	maxRequests int
	// maxEvents is the most undelivered events in memory. Defaults to 10,000.
	maxEvents int
}

// withDefaults returns a copy with defaults in place of zero values.
func (c ForwarderConfig) withDefaults() ForwarderConfig {
	c.maxRequests = cmp.Or(c.maxRequests, 64)
	c.maxEvents = cmp.Or(c.maxEvents, 10_000)
	if c.Receiver.Transport == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.MaxIdleConns, transport.MaxIdleConnsPerHost = c.maxRequests, c.maxRequests
		c.Receiver.Transport = transport
	}
	return c
}

// sleep waits, and reports whether it did so until the end rather than until ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
