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

// Config configures a Client. BaseURL and APIKey are required; everything else has a default that
// is right for a service.
type Config struct {
	// BaseURL is the address of the API with its version, such as https://api.example.com/v1.
	BaseURL string
	// APIKey is the key as the portal showed it. It is sent to BaseURL, and appears in no error and
	// no log line.
	APIKey string
	// HTTPClient sends the requests. It must have no Timeout of its own: streams of events and
	// long-polls are meant to last. By default the client has one with connections of its own,
	// which Client.Close closes.
	HTTPClient *http.Client
	// UserAgent is sent with every request; by default "hubcloud-client".
	UserAgent string
	// Timeout bounds each single try of a call, connection and answer included; by default 40 s,
	// more than the service takes at worst. Streams have a timeout of their own, StallTimeout.
	Timeout time.Duration
	// Retry says how long and how patiently calls are repeated.
	Retry Retry
	// Log gets a line, at the level of warnings, for each try that is repeated and each connection
	// that is begun anew; by default nobody does.
	Log *slog.Logger
}

// Retry is how calls are repeated. The zero Retry is the default.
//
// What is repeated is the contract's table: 429 after its Retry-After, 500, 502, 503 and 504 with
// backoff, and connections that fail. A command is sent again under the same idempotency key, so
// that it runs once. A call that would do harm when done twice (creating a site, inviting,
// resetting a link) is repeated after a failed connection only if nothing of it had been sent. No
// other 4xx is repeated.
type Retry struct {
	// MaxElapsed bounds all tries of one call and the waits between them; by default a minute. A
	// wait that would go beyond it, or beyond the deadline of the call's context, is not begun: the
	// call gives the last error instead. Negative: every call is tried once.
	MaxElapsed time.Duration
	// MinBackoff and MaxBackoff bound the wait between two tries, which doubles and is spread over
	// its upper half; by default 200 ms and 10 s. Connections of Client.Events wait in the same
	// way.
	MinBackoff, MaxBackoff time.Duration
	// Except are types that are given back at once although they could be repeated: a program at
	// which a person waits may rather say ErrHubOffline than wait for the hub.
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

// Client calls the API with one key. It is safe for use by many goroutines, and starts none of its
// own but those of calls under way.
type Client struct {
	base      string
	key       string
	http      *http.Client
	userAgent string
	timeout   time.Duration
	retry     Retry
	log       *slog.Logger
}

// New makes a client. It asks the service for nothing yet: a wrong key shows at the first call.
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
		return nil, errors.New("APIKey: is missing")
	case strings.ContainsFunc(cfg.APIKey, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return nil, errors.New(
			"APIKey: must be one word of printable ASCII characters, as the portal showed it",
		)
	case cfg.HTTPClient != nil && cfg.HTTPClient.Timeout != 0:
		return nil, errors.New(
			"HTTPClient: must have no Timeout of its own, which would end streams and long-polls; set Config.Timeout",
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

// newTransport makes connections of a client's own. The default transport keeps two idle ones for a
// host, which a program that follows many hubs by long-polls would close and open all the time.
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

// Close closes connections that are kept for later calls. Calls under way go on, and the client can
// still be used.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// NewIdempotencyKey makes a key for Command.IdempotencyKey: 26 characters, random. A program that
// wants to be able to go on with a command after its own restart keeps the key before it sends the
// command.
func NewIdempotencyKey() string { return rand.Text() }
