package client

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Config configures a Client. BaseURL and APIKey are required.
type Config struct {
	// BaseURL is the address of the API with its version, such as https://api.example.com/v1.
	BaseURL string
	// APIKey is the key that the portal showed. It is sent to BaseURL only, and appears in no error
	// and no log line.
	APIKey string
	// HTTPClient sends the requests. It must have no Timeout, because streams of events and
	// long-polls last long. Defaults to a client with a connection pool of its own, which
	// Client.Close closes.
	HTTPClient *http.Client
	// UserAgent is sent with every request. Defaults to "hubcloud-client".
	UserAgent string
	// Timeout bounds each attempt of a call, including the answer. Defaults to 40 seconds, more
	// than the service takes at worst. Streams have StallTimeout instead.
	Timeout time.Duration
	// Retry configures how calls are retried.
	Retry Retry
	// Log gets a warning for each attempt that is retried and each stream that is reconnected. If
	// nil, nothing is logged.
	Log *slog.Logger
}

// Retry configures how calls are retried. The zero value has the defaults.
//
// The contract says what is retried: 429 after its Retry-After, 500, 502, 503 and 504 with backoff,
// and failed connections. Commands are retried under the same idempotency key, so they run once.
// Calls that must not run twice (creating a site, inviting, resetting a link) are retried after a
// failed connection only if nothing of the request was sent, or if an idempotency key protects
// them. Other 4xx errors are not retried.
type Retry struct {
	// MaxElapsed bounds all attempts of a call and the waits between them. If a wait would exceed
	// it, or the deadline of the call's context, the call returns the last error instead. Negative
	// means a single attempt. Defaults to a minute.
	MaxElapsed time.Duration
	// MinBackoff and MaxBackoff bound the wait between two attempts, which doubles each time and is
	// randomized over its upper half. They apply to the connections of Client.Events too. Default
	// to 200 ms and 10 s.
	MinBackoff, MaxBackoff time.Duration
	// Except lists error types that are returned at once although they could be retried: an
	// interactive program may prefer ErrHubOffline over a wait.
	Except []ErrorType
}

// Defaults of Config and Retry.
const (
	defaultUserAgent  = "hubcloud-client"
	defaultTimeout    = 40 * time.Second
	defaultMaxElapsed = time.Minute
	defaultMinBackoff = 200 * time.Millisecond
	defaultMaxBackoff = 10 * time.Second
)

// Client calls the API with one key. It is safe for concurrent use and starts goroutines only
// within calls.
type Client struct {
	base      string
	key       string
	http      *http.Client
	userAgent string
	timeout   time.Duration
	retry     Retry
	log       *slog.Logger
}

// New returns a client. It sends no request, so a wrong key is reported by the first call.
func New(cfg Config) (*Client, error) {
	base, err := url.Parse(cfg.BaseURL)
	if err != nil || (base.Scheme != "http" && base.Scheme != "https") || base.Host == "" ||
		base.RawQuery != "" ||
		base.Fragment != "" {
		return nil, fmt.Errorf(
			"BaseURL %q: must be http://… or https://…, with the API's version, such as https://api.example.com/v1",
			cfg.BaseURL,
		)
	}
	switch {
	case cfg.APIKey == "":
		return nil, errors.New("APIKey: is required")
	case strings.ContainsFunc(cfg.APIKey, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return nil, errors.New(
			"APIKey: must be printable ASCII without spaces, as the portal showed it",
		)
	case cfg.HTTPClient != nil && cfg.HTTPClient.Timeout != 0:
		return nil, errors.New(
			"HTTPClient: must not have a Timeout, which would end streams and long-polls; set Config.Timeout",
		)
	}
	c := &Client{
		base: strings.TrimRight(
			base.String(), "/",
		), key: cfg.APIKey, http: cfg.HTTPClient, userAgent: cfg.UserAgent,
		timeout: cfg.Timeout, retry: cfg.Retry, log: cfg.Log,
	}
	if c.http == nil {
		c.http = &http.Client{Transport: newTransport()}
	}
	if c.userAgent == "" {
		c.userAgent = defaultUserAgent
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	c.timeout = positive(c.timeout, defaultTimeout)
	if c.retry.MaxElapsed == 0 {
		c.retry.MaxElapsed = defaultMaxElapsed
	}
	c.retry.MinBackoff = positive(c.retry.MinBackoff, defaultMinBackoff)
	c.retry.MaxBackoff = max(positive(c.retry.MaxBackoff, defaultMaxBackoff), c.retry.MinBackoff)
	return c, nil
}

// newTransport returns a transport for one client. The default transport keeps only two idle
// connections to a host; a program that follows many hubs by long-polling would open and close
// connections all the time.
func newTransport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = t.MaxIdleConns
	return t
}

func positive(d, otherwise time.Duration) time.Duration {
	if d <= 0 {
		return otherwise
	}
	return d
}

// Close closes idle connections. Calls under way continue, and the client can still be used.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// NewIdempotencyKey returns a random key of 26 characters for Command.IdempotencyKey. A program
// that wants to continue a command after its own restart stores the key before it sends the
// command.
func NewIdempotencyKey() string { return rand.Text() }
