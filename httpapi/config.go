package httpapi

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/domain"
	"hubcloud/httpapi/portal"
	"hubcloud/streams/shares"
	"hubcloud/streams/telemetry"
)

// Defaults of Config. All but DefaultStreamsPerKey are from the contract's
// table of limits.
const (
	DefaultRate            = 50.0
	DefaultBurst           = 100
	DefaultStreamLifetime  = 15 * time.Minute
	DefaultStreamKeepalive = 30 * time.Second
	DefaultStreamsPerKey   = 5000
	DefaultRetention       = 24 * time.Hour

	DefaultResponseBytes       = 32 << 20
	DefaultResponseBytesPerKey = 8 << 20
	DefaultConnections         = 10_000
)

// Config configures an API. An API that serves /v1 needs Keys, Hubs, ReadModels, Directory,
// PastStates, Devices, Commands, Idempotency, Events, OrgEvents, FeedReaders, Audit, Webhooks,
// Codes and Enrolment; one that serves only health and readiness needs none of them.
type Config struct {
	Keys        Keys
	Hubs        Hubs
	ReadModels  ReadModels
	Directory   Directory
	PastStates  PastStates
	Devices     Devices
	Commands    Commands
	Idempotency Idempotency
	Events      Events
	OrgEvents   OrgEvents
	FeedReaders FeedReaders
	Audit       Audit
	Webhooks    Webhooks
	Codes       Codes
	Enrolment   Enrolment

	// Freshness reports whether Keys and Hubs are up to date. If nil, they always are.
	Freshness Freshness

	// KeyUse is notified of each request with a valid key. May be nil.
	KeyUse KeyUse

	// Attention returns what needs attention: it is the portal.
	Attention Attention
	// Portal has the pages under /portal. If nil, there are none.
	Portal *portal.Portal

	// Ready returns the state of the service's components; the process is ready when all are OK or
	// degraded. The public /readyz calls it at most once a second and shows no component;
	// API.Readiness calls it for each request and shows all. If nil, there are no components.
	Ready func(ctx context.Context) []Component

	// Build identifies the program in the answer of /healthz.
	Build Build

	// Environment is the environment of the installation. Keys of other environments are rejected.
	// Required.
	Environment string

	// Rate is how many requests a second each key, and each address without a key, may make on
	// average. Defaults to DefaultRate.
	Rate float64 `check:"positive"`
	// Burst is how many requests a key or address may make at once. Defaults to DefaultBurst.
	Burst int `check:"positive"`

	// StreamLifetime is the longest that an event stream lasts. Each stream ends between 13/15 and
	// 15/15 of it, so that clients do not reconnect all at once. Defaults to DefaultStreamLifetime.
	StreamLifetime time.Duration `check:"positive"`
	// StreamKeepalive is the time between two keepalive comments. Defaults to
	// DefaultStreamKeepalive.
	StreamKeepalive time.Duration `check:"positive"`
	// StreamsPerKey is how many event streams and reads of events one key may have open on this
	// replica; more are rejected with 429. At most half of Connections. Defaults to
	// DefaultStreamsPerKey.
	StreamsPerKey int `check:"positive"`
	// StreamTime is how long the event streams and searches of an organization together may take, in a
	// second on this replica. While others use the API or the portal, or have events, it is half of that, and the time
	// counts for which they wait for a processor. Beyond it they wait for each other, and a write has
	// several events.
	// Defaults to three quarters of all processors' time.
	StreamTime time.Duration `check:"positive"`

	// ResponseBytes is how much memory responses on their way to clients may take on this replica.
	// No organization gets more than half of what the others leave. Once half of a limit is used,
	// pages are read in smaller parts; beyond the limit requests are rejected with 429, or with 503
	// if other clients use the memory. Defaults to DefaultResponseBytes.
	ResponseBytes int64 `check:"positive"`
	// ResponseBytesPerKey is the part of ResponseBytes that one key may use. Defaults to
	// DefaultResponseBytesPerKey, or ResponseBytes if that is less.
	ResponseBytesPerKey int64 `check:"positive"`

	// Connections is how many connections the listener accepts. Beyond it the connection that has
	// been idle longest is closed; if all are busy, the new one is rejected with 503. Defaults to
	// DefaultConnections.
	Connections int `check:"positive"`
	// ConnectionsPerAddress is how many connections one address may have that is not a trusted
	// proxy's. Beyond it the longest idle one of the address is closed; if all are busy, the new
	// one is rejected with 429. Defaults to half of Connections.
	ConnectionsPerAddress int `check:"positive"`

	// Retention is how long hubs' events are kept, and thus how long a client can resume from a
	// cursor. Open streams send a new position well before. Defaults to DefaultRetention.
	Retention time.Duration `check:"positive"`
	// HubTimeout is how long Devices and Commands wait for a hub. Defaults to
	// domain.DefaultHubTimeout.
	HubTimeout time.Duration `check:"positive"`

	// TrustedProxies are the networks whose X-Forwarded-For is trusted. If empty, a client's
	// address is its connection's.
	TrustedProxies []netip.Prefix

	// Draining is closed when the service begins to stop: open streams end, waiting requests answer
	// at once, and /readyz reports that the process is not ready. If nil, the service never stops.
	Draining <-chan struct{}

	// Shares reports the limits of the API, and knows whether others are active. If nil, nothing
	// reports them, and nobody is.
	Shares *shares.Registry
	// Now is the clock of timestamps and rate limits. Defaults to time.Now.
	Now func() time.Time
	// Logger gets one line for each request. Defaults to slog.Default().
	Logger *slog.Logger
	// Metrics registers the package's metrics. If nil, they are not registered.
	Metrics prometheus.Registerer
	// Tracer starts a span for each request. The zero value starts none.
	Tracer telemetry.Tracer
}

// WithDefaults returns a copy of c in which fields that are zero have their defaults.
func (c Config) WithDefaults() Config {
	c.Rate = cmp.Or(c.Rate, DefaultRate)
	c.Burst = cmp.Or(c.Burst, DefaultBurst)
	c.StreamLifetime = cmp.Or(c.StreamLifetime, DefaultStreamLifetime)
	c.StreamKeepalive = cmp.Or(c.StreamKeepalive, DefaultStreamKeepalive)
	c.Connections = cmp.Or(c.Connections, DefaultConnections)
	c.ConnectionsPerAddress = cmp.Or(c.ConnectionsPerAddress, max(1, c.Connections/2))
	c.StreamsPerKey = min(cmp.Or(c.StreamsPerKey, DefaultStreamsPerKey), max(1, c.Connections/2))
	c.StreamTime = cmp.Or(c.StreamTime, time.Duration(runtime.GOMAXPROCS(0))*time.Second*3/4)
	c.ResponseBytes = cmp.Or(c.ResponseBytes, DefaultResponseBytes)
	c.ResponseBytesPerKey = cmp.Or(
		c.ResponseBytesPerKey, min(DefaultResponseBytesPerKey, c.ResponseBytes),
	)
	c.Retention = cmp.Or(c.Retention, DefaultRetention)
	c.HubTimeout = cmp.Or(c.HubTimeout, domain.DefaultHubTimeout)
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return c
}

// Validate returns an error that names the first field with an impossible value. It expects the
// result of WithDefaults.
func (c Config) Validate() error {
	if c.Environment != domain.EnvironmentLive && c.Environment != domain.EnvironmentDev {
		return fmt.Errorf(
			"httpapi: Environment: must be %s or %s, not %q", domain.EnvironmentLive,
			domain.EnvironmentDev, c.Environment,
		)
	}
	return domain.CheckFields("httpapi", c)
}
