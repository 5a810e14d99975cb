package httpapi

import (
	"context"
	"net/http"
	"net/netip"

	"github.com/go-chi/chi/v5"

	"hubcloud/domain"
	"hubcloud/streams/shares"
)

// API is the handler of everything that the package serves. It is safe for concurrent use.
type API struct{ api *api }

// api is the state that the handlers share.
type api struct {
	Config
	router      *chi.Mux
	methods     []string          // all methods of the routing table
	wrongMethod map[string]*route // answers 405, by pattern
	unknownPath map[string]*route // answers 404, by the path's first segment

	unparsed          *route // stands for requests that the server could not parse
	operatorReadiness *route // answers /readyz on the operators' port

	ready        readiness
	keyRates     *shares.Rate[string]
	addressRates *shares.Rate[netip.Prefix]
	probeRates   *shares.Rate[netip.Prefix]
	// handshakeRates are the TLS handshakes of addresses.
	handshakeRates *shares.Rate[netip.Prefix]
	timeRates      *shares.Rate[string]
	// rejectedRates are the requests beyond the former two, by key or address.
	rejectedRates *shares.Rate[string]
	streams       *shares.Pool
	batches       *shares.Pool
	memory        *shares.Pool
	unread        *shares.Pool
	connections   *connections
	metrics       *metrics
	buffers       buffers
	compressors   *compressors
}

// probesPerSecond and probeBurst bound the requests for health and readiness from one address.
// Balancers and supervisors probe once a second or less.
const probesPerSecond, probeBurst = 20, 100

// batchesTotal and batchesPerOrg bound the requests for many commands, and for their outcomes, that
// are under way: each may talk to as many hubs as it has channels.
const batchesTotal, batchesPerOrg = 256, 16

// New returns an API. It returns an error if cfg is not valid (see Config.Validate). The API must
// be served by a server from NewServer, on a listener from Listener: its deadlines depend on the
// server's.
func New(cfg Config) (API, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return API{}, err
	}
	rate := func(name string) shares.RateConfig {
		return shares.RateConfig{Name: name, PerSecond: cfg.Rate, Burst: cfg.Burst}
	}
	a := &api{
		Config:       cfg,
		keyRates:     shares.NewRate[string](cfg.Shares, rate("requests_of_keys"), cfg.Now()),
		addressRates: shares.NewRate[netip.Prefix](cfg.Shares, rate("requests_of_addresses"), cfg.Now()),
		rejectedRates: shares.NewRate[string](cfg.Shares, shares.RateConfig{
			Name: "rejected_requests", PerSecond: rejectedPerSecond, Burst: rejectedBurst,
		}, cfg.Now()),
		probeRates: shares.NewRate[netip.Prefix](cfg.Shares, shares.RateConfig{
			Name: "probes_of_addresses", PerSecond: probesPerSecond, Burst: probeBurst,
		}, cfg.Now()),
		handshakeRates: shares.NewRate[netip.Prefix](cfg.Shares, shares.RateConfig{
			Name: "handshakes_of_addresses", PerSecond: handshakesPerRequest * cfg.Rate,
			Burst: handshakeBurst * cfg.Burst,
		}, cfg.Now()),
		timeRates: shares.NewRate[string](cfg.Shares, shares.RateConfig{
			Name: "stream_microseconds", PerSecond: float64(cfg.StreamTime.Microseconds()),
			Burst: streamDebt * int(cfg.StreamTime.Microseconds()),
		}, cfg.Now()),
		wrongMethod: map[string]*route{},
		streams: shares.NewPool(cfg.Shares, shares.PoolConfig{
			Name: "event_streams", What: "event streams and reads of events are open",
			Of: "API key", Limits: shares.Limits{
				Total: int64(cfg.Connections), PerID: int64(cfg.StreamsPerKey),
			},
		}),
		batches: shares.NewPool(cfg.Shares, shares.PoolConfig{
			Name: "command_batches", What: "requests for many commands are under way", Of: "API key",
			Limits: shares.Limits{Total: batchesTotal, PerOrg: batchesPerOrg},
		}),
		memory: shares.NewPool(cfg.Shares, shares.PoolConfig{
			Name: "response_bytes", What: "bytes of responses are unread", Of: "API key or address",
			Limits: shares.Limits{Total: cfg.ResponseBytes, PerID: cfg.ResponseBytesPerKey},
		}),
		unread:      newUnreadPool(cfg.Shares),
		metrics:     newMetrics(cfg.Metrics),
		compressors: newCompressors(),
	}
	a.connections = newConnections(
		cfg.Connections, cfg.ConnectionsPerAddress, a.isTrustedProxy, a.metrics.connections,
	)
	a.router = a.newRouter()
	return API{a}, nil
}

// ServeHTTP answers a request.
func (a API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.api.router.ServeHTTP(w, r) }

// ShareLimits makes the rate limits of keys apply to all replicas on the bus together, until ctx
// ends. Without ShareLimits they apply to each replica alone.
func (a API) ShareLimits(ctx context.Context, bus shares.Bus) error {
	return shares.ShareRate(ctx, a.api.keyRates, bus, a.api.Now)
}

// ownHub returns the hub of the path if it is within the caller's reach. All other hubs, unknown hubs
// and malformed ids get the same answer in the same time.
func (a *api) ownHub(req *request) (domain.HubID, error) {
	hub, ok := domain.ParseHubID(req.http.PathValue("hub_id"))
	if !ok || !isWithin(a.Hubs, req.key.Reach, hub) {
		return "", domain.ErrHubNotFound()
	}
	return hub, nil
}

// isWithin reports whether a hub is within a reach.
func isWithin(hubs Hubs, reach domain.Reach, hub domain.HubID) bool {
	access, ok := hubs.Hub(hub)
	return ok && reach.HasHub(access)
}
