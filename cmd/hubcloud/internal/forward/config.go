package forward

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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

// Config configures a Forwarder. Feed and To are required.
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
	// position has changed, at most once in SaveEvery, and at the end. A nil Save stores nothing.
	Save func(position string) error
	// SaveEvery defaults to a second.
	SaveEvery time.Duration
	// Timeout bounds a request, including its answer. Defaults to 30 seconds.
	Timeout time.Duration
	// MinBackoff and MaxBackoff bound the wait before an event is posted again, which doubles with
	// each attempt and is randomized over its upper half. Default to 500 ms and a minute.
	MinBackoff, MaxBackoff time.Duration
	// MaxRequests is the most requests under way for all hubs. Defaults to 64.
	MaxRequests int
	// MaxEvents is the most undelivered events in memory. Defaults to 10,000.
	MaxEvents int
	// Grace is how long requests under way may take once ctx has ended. Defaults to 5 seconds.
	Grace time.Duration
	// UserAgent is sent with every request. Defaults to "hubcloud-forward".
	UserAgent string
	// Transport sends the requests. Defaults to one of its own that keeps MaxRequests connections.
	Transport http.RoundTripper
	// Logger receives failed deliveries, pauses and progress. Defaults to slog.Default().
	Logger *slog.Logger
}

// WithDefaults returns a copy with defaults in place of zero values.
func (c Config) WithDefaults() Config {
	c.SaveEvery = cmp.Or(c.SaveEvery, time.Second)
	c.Timeout = cmp.Or(c.Timeout, 30*time.Second)
	c.MinBackoff = cmp.Or(c.MinBackoff, 500*time.Millisecond)
	c.MaxBackoff = max(cmp.Or(c.MaxBackoff, time.Minute), c.MinBackoff)
	c.MaxRequests = cmp.Or(c.MaxRequests, 64)
	c.MaxEvents = cmp.Or(c.MaxEvents, 10_000)
	c.Grace = cmp.Or(c.Grace, 5*time.Second)
	c.UserAgent = cmp.Or(c.UserAgent, "hubcloud-forward")
	c.Logger = cmp.Or(c.Logger, slog.Default())
	if c.Save == nil {
		c.Save = func(string) error { return nil }
	}
	if c.Transport == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.MaxIdleConns, transport.MaxIdleConnsPerHost = c.MaxRequests, c.MaxRequests
		c.Transport = transport
	}
	return c
}

// Validate returns an error that names the first invalid field. It expects the result of
// WithDefaults.
func (c Config) Validate() error {
	switch {
	case c.Feed == nil:
		return errors.New("forward: Feed is required")
	case c.MaxRequests < 1:
		return fmt.Errorf("forward: MaxRequests %d: must be at least 1", c.MaxRequests)
	case c.MaxEvents < 1:
		return fmt.Errorf("forward: MaxEvents %d: must be at least 1", c.MaxEvents)
	case c.Timeout < 0 || c.SaveEvery < 0 || c.Grace < 0 || c.MinBackoff < 0:
		return errors.New(
			"forward: Timeout, SaveEvery, Grace and MinBackoff must not be negative",
		)
	}
	return nil
}
