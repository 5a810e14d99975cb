package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/domain"
	"hubcloud/httpapi/portal"
	"hubcloud/httpapi/ratelimit"
	"hubcloud/streams/telemetry"
)

// Defaults of Config, from the contract's table of limits but for StreamsPerKey.
const (
	DefaultRate            = 50.0
	DefaultBurst           = 100
	DefaultStreamLifetime  = 15 * time.Minute
	DefaultStreamKeepalive = 30 * time.Second
	DefaultStreamsPerKey   = 5000
	DefaultHubTimeout      = 10 * time.Second
	DefaultRetention       = 24 * time.Hour

	DefaultAnswerBytes       = 32 << 20
	DefaultAnswerBytesPerKey = 8 << 20
	DefaultConnections       = 10_000
)

// Config is what the API needs. Keys, Hubs, ReadModels, Directory, Devices, Commands, Once, Events
// and Enrolment must be given.
type Config struct {
	Keys       Keys
	Hubs       Hubs
	ReadModels ReadModels
	Directory  Directory
	Devices    Devices
	Commands   Commands
	Once       Once
	Events     Events
	Enrolment  Enrolment

	// Freshness tells whether Keys and Hubs still hold; nil: they always do.
	Freshness Freshness

	// KeyUse hears of each request with a valid key; nil: nobody does.
	KeyUse KeyUse

	// Portal is what there is under /portal; nil: nothing.
	Portal *portal.Portal

	// Ready returns how the parts of the service are doing; the process is ready when all are OK.
	// nil: it has no parts. The public /readyz asks at most once a second and shows no part;
	// API.Readiness shows all.
	Ready func(ctx context.Context) []Component

	// Environment is the installation's, `live` or `dev`: keys of the other are refused. It must be
	// given.
	Environment string
	// Rate is how many requests a second each key, and each address without one, may make in the
	// long run; Burst how many at once. 0 stands for DefaultRate and DefaultBurst.
	Rate  float64
	Burst int
	// StreamLifetime is the longest that an event stream lasts; each ends between 13/15 and 15/15
	// of it, so that clients do not all come back together. 0 stands for DefaultStreamLifetime.
	StreamLifetime time.Duration
	// StreamKeepalive is the time between two keepalive comments. 0 stands for
	// DefaultStreamKeepalive.
	StreamKeepalive time.Duration
	// StreamsPerKey is how many event streams and reads of events one key may have open on this
	// replica; one more is refused with 429. 0 stands for DefaultStreamsPerKey.
	StreamsPerKey int
	// AnswerBytes is how much memory answers on their way to clients may take on this replica, and
	// AnswerBytesPerKey those to one key; no organization has more than half. Past it pages are
	// read in smaller parts, then refused with 429, or with 503 where others have used it up. 0
	// stands for DefaultAnswerBytes and DefaultAnswerBytesPerKey.
	AnswerBytes       int64
	AnswerBytesPerKey int64
	// Connections is how many connections the listener has, and ConnectionsPerAddress how many from
	// one address that is no trusted proxy's. Where one would be too many the one that has been
	// idle for longest is closed; when all are busy the new one is refused, with 503 or 429. One
	// key has at most half of Connections for streams and reads of events. 0 stands for
	// DefaultConnections, and for half of Connections.
	Connections           int
	ConnectionsPerAddress int
	// Retention is how long hubs' events are kept, and so how long a client can go on from a
	// cursor: an open stream tells its client a new position well before. 0 stands for
	// DefaultRetention.
	Retention time.Duration
	// HubTimeout is how long a hub may take to answer; what Devices and Commands keep. 0 stands for
	// DefaultHubTimeout.
	HubTimeout time.Duration
	// TrustedProxies are the networks whose X-Forwarded-For is believed. None: a client's address
	// is that of its connection.
	TrustedProxies []netip.Prefix
	// Draining is closed when the service begins to stop: open streams end, waiting requests answer
	// at once, and /readyz says that the process is not ready. nil: never.
	Draining <-chan struct{}

	// Now is the clock of timestamps and rate limits; nil stands for time.Now.
	Now func() time.Time
	// Log gets one line a request; nil discards them.
	Log *slog.Logger
	// Metrics is where the package's metrics are registered; nil: nowhere.
	Metrics prometheus.Registerer
	// Tracer begins a span for each request; the zero value none.
	Tracer telemetry.Tracer
}

// API is the handler of everything that the package serves. Its methods may be called by several
// goroutines at once.
type API struct{ api *api }

// api is what the handlers share.
type api struct {
	Config
	router   *chi.Mux
	methods  []string          // of the table
	refusing map[string]*route // what answers methods that a pattern does not take
	// what answers where there is nothing, by the path's first segment
	nowhere     map[string]*route
	unread      *route // what answers requests that the server could not read
	details     *route // what answers operators' /readyz
	ready       readiness
	keys        *ratelimit.Limiter[string]
	addresses   *ratelimit.Limiter[netip.Prefix]
	streams     *quota
	answers     *answers
	connections *connections
	metrics     *metrics
	buffers     buffers
}

// New makes the API. Serve it with a server made by NewServer, whose time-outs its own deadlines
// are made to go with, on a listener that went through Listener.
func New(cfg Config) API {
	if cfg.Rate <= 0 {
		cfg.Rate = DefaultRate
	}
	if cfg.Burst <= 0 {
		cfg.Burst = DefaultBurst
	}
	if cfg.StreamLifetime <= 0 {
		cfg.StreamLifetime = DefaultStreamLifetime
	}
	if cfg.StreamKeepalive <= 0 {
		cfg.StreamKeepalive = DefaultStreamKeepalive
	}
	if cfg.StreamsPerKey <= 0 {
		cfg.StreamsPerKey = DefaultStreamsPerKey
	}
	if cfg.Connections <= 0 {
		cfg.Connections = DefaultConnections
	}
	if cfg.ConnectionsPerAddress <= 0 {
		cfg.ConnectionsPerAddress = max(1, cfg.Connections/2)
	}
	cfg.StreamsPerKey = min(cfg.StreamsPerKey, max(1, cfg.Connections/2))
	if cfg.AnswerBytes <= 0 {
		cfg.AnswerBytes = DefaultAnswerBytes
	}
	if cfg.AnswerBytesPerKey <= 0 {
		cfg.AnswerBytesPerKey = min(DefaultAnswerBytesPerKey, cfg.AnswerBytes)
	}
	if cfg.Retention <= 0 {
		cfg.Retention = DefaultRetention
	}
	if cfg.HubTimeout <= 0 {
		cfg.HubTimeout = DefaultHubTimeout
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	a := &api{
		Config:    cfg,
		keys:      ratelimit.New[string](cfg.Rate, cfg.Burst, cfg.Now()),
		addresses: ratelimit.New[netip.Prefix](cfg.Rate, cfg.Burst, cfg.Now()),
		refusing:  map[string]*route{},
		streams:   newQuota(cfg.StreamsPerKey),
		metrics:   newMetrics(cfg.Metrics),
	}
	a.connections = newConnections(
		cfg.Connections, cfg.ConnectionsPerAddress, a.isTrustedProxy, a.metrics.connections,
	)
	a.answers = newAnswers(cfg.AnswerBytesPerKey, cfg.AnswerBytes, a.metrics.answers)
	a.router = a.newRouter()
	return API{a}
}

// ServeHTTP answers a request.
func (a API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.api.router.ServeHTTP(w, r) }

// ShareLimits makes the rate limits of keys hold over all replicas on a bus, until ctx ends.
// Without it they hold on this one.
func (a API) ShareLimits(ctx context.Context, bus ratelimit.Bus) error {
	return ratelimit.Share(ctx, a.api.keys, bus, a.api.Now)
}

// ownHub gives the hub of the path, when it is the caller's. A hub that is not, a hub that is not
// there and what is no hub id at all take the same way to the same answer.
func (a *api) ownHub(x *exchange) (domain.HubID, error) {
	hub, ok := domain.ParseHubID(x.r.PathValue("hub_id"))
	if ok {
		var access domain.HubAccess
		access, ok = a.Hubs.Hub(hub)
		ok = ok && access.OrgID == x.key.OrgID
	}
	if !ok {
		return "", domain.ErrHubNotFound()
	}
	return hub, nil
}
