package client

import (
	"crypto/rand"
	"log/slog"
	"net/http"
	"strings"
	"time"
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
	logger    *slog.Logger
}

// New returns a client. It sends no request, so a wrong key is reported by the first call.
func New(cfg Config) (*Client, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Client{
		base: strings.TrimRight(cfg.BaseURL, "/"), key: cfg.APIKey, http: cfg.HTTPClient,
		userAgent: cfg.UserAgent, timeout: cfg.Timeout, retry: cfg.Retry, logger: cfg.Logger,
	}, nil
}

// newTransport returns a transport for one client. The default transport keeps only two idle
// connections to a host; a program that follows many hubs by long-polling would open and close
// connections all the time.
func newTransport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = t.MaxIdleConns
	return t
}

// Close closes idle connections. Calls under way continue, and the client can still be used.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// NewIdempotencyKey returns a random key of 26 characters for Command.IdempotencyKey. A program
// that wants to continue a command after its own restart stores the key before it sends the
// command.
func NewIdempotencyKey() string { return rand.Text() }
