package client

import (
	"cmp"
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
	// than the service takes at worst. Streams are reconnected after 75 seconds of silence instead.
	Timeout time.Duration
	// Retry configures how calls are retried.
	Retry Retry
	// Logger receives a warning for each attempt that is retried and each stream that is
	// reconnected. Defaults to slog.Default().
	Logger *slog.Logger
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
	// to 200 ms and 10 s. A MaxBackoff below MinBackoff counts as MinBackoff.
	MinBackoff, MaxBackoff time.Duration
	// Except lists error types that are returned at once although they could be retried: an
	// interactive program may prefer ErrHubOffline over a wait.
	Except []ErrorType
}

// WithDefaults returns a copy with defaults in place of zero values.
func (c Config) WithDefaults() Config {
	if c.HTTPClient == nil {
		c.HTTPClient = &http.Client{Transport: newTransport()}
	}
	c.UserAgent = cmp.Or(c.UserAgent, "hubcloud-client")
	c.Timeout = cmp.Or(c.Timeout, 40*time.Second)
	c.Retry.MaxElapsed = cmp.Or(c.Retry.MaxElapsed, time.Minute)
	c.Retry.MinBackoff = cmp.Or(c.Retry.MinBackoff, 200*time.Millisecond)
	c.Retry.MaxBackoff = max(cmp.Or(c.Retry.MaxBackoff, 10*time.Second), c.Retry.MinBackoff)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return c
}

// Validate returns an error that names the first invalid field. It expects the result of
// WithDefaults.
func (c Config) Validate() error {
	base, err := url.Parse(c.BaseURL)
	switch {
	case err != nil || (base.Scheme != "http" && base.Scheme != "https") || base.Host == "" ||
		base.RawQuery != "" || base.Fragment != "":
		return fmt.Errorf(
			"client: BaseURL %q must be http://… or https://…, with the API's version, such "+
				"as https://api.example.com/v1",
			c.BaseURL,
		)
	case c.APIKey == "":
		return errors.New("client: APIKey is required")
	case strings.ContainsFunc(c.APIKey, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return errors.New(
			"client: APIKey must be printable ASCII without spaces, as the portal showed it",
		)
	case c.HTTPClient.Timeout != 0:
		return errors.New(
			"client: HTTPClient must not have a Timeout, which would end streams and long-polls; " +
				"set Config.Timeout",
		)
	case c.Timeout < 0:
		return errors.New("client: Timeout must not be negative")
	case c.Retry.MinBackoff < 0:
		return errors.New("client: Retry.MinBackoff must not be negative")
	}
	return nil
}
