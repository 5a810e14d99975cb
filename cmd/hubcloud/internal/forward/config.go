package forward

import (
	"cmp"
	"context"
	"iter"
	"log/slog"
	"net/http"
	"time"

	"hubcloud/httpapi/client"
	"hubcloud/httpapi/webhook"
)

// Feed yields the events after a position, as client.Client.Feed does. onPosition is called with
// positions that are not an event's.
type Feed func(
	ctx context.Context, after string, onPosition func(position string),
) iter.Seq2[client.FeedEvent, error]

const (
	// saveEvery is the shortest time between two saved positions.
	saveEvery = time.Second
	// minBackoff and maxBackoff bound the wait before an event is posted again, which doubles with
	// each attempt and is randomized over its upper half.
	minBackoff, maxBackoff = 500 * time.Millisecond, time.Minute
	// grace is how long requests under way may take once the forwarder is stopped.
	grace = 5 * time.Second
)

// Config configures a Forwarder. Feed, To, Timeout, UserAgent and Logger are required.
type Config struct {
	// Feed is where events come from.
	Feed Feed
	// Position is where to begin; "" is the oldest stored event.
	Position string
	// To is the address that events are posted to.
	To string
	// Secrets sign each request, all of them. Without secrets, requests are not signed.
	Secrets []webhook.Secret
	// Batch posts up to 100 events of a hub in one request.
	Batch bool
	// Skip has cursors of events that are not posted.
	Skip []string
	// Save stores the position before which every event was delivered. It is called when the
	// position has changed, at most once in saveEvery, and at the end. A nil Save stores nothing.
	Save func(position string) error
	// Timeout bounds a request, including its answer.
	Timeout time.Duration
	// UserAgent is sent with every request.
	UserAgent string
	// Logger receives failed deliveries, pauses and progress.
	Logger *slog.Logger

	// maxRequests is the most requests under way for all hubs. Defaults to 64.
	maxRequests int
	// maxEvents is the most undelivered events in memory. Defaults to 10,000.
	maxEvents int
	// transport sends the requests. Defaults to one of its own that keeps maxRequests connections.
	transport http.RoundTripper
}

// withDefaults returns a copy with defaults in place of zero values.
func (c Config) withDefaults() Config {
	c.maxRequests = cmp.Or(c.maxRequests, 64)
	c.maxEvents = cmp.Or(c.maxEvents, 10_000)
	if c.transport == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.MaxIdleConns, transport.MaxIdleConnsPerHost = c.maxRequests, c.maxRequests
		c.transport = transport
	}
	return c
}
