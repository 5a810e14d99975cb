package commands

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/oklog/ulid/v2"
	"github.com/prometheus/client_golang/prometheus"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"hubcloud/domain"
	"hubcloud/hubbridge/protocol"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/telemetry"
)

// Presence reports whether hubs are connected.
type Presence interface {
	// Online reports whether this replica's view has the hub connected.
	Online(hub domain.HubID) bool
	// Fetch reads the hub's stored presence; false when the hub has never connected.
	Fetch(ctx context.Context, hub domain.HubID) (domain.Presence, bool, error)
}

// CallerConfig configures a Caller. Every field may be zero.
type CallerConfig struct {
	// Timeout is how long a hub has to answer. Defaults to domain.DefaultHubTimeout.
	Timeout time.Duration `check:"at least 0"`
	// Logger gets the faults of hubs. Defaults to slog.Default().
	Logger *slog.Logger
	// Metrics is where the caller's metrics are registered; nil registers nothing.
	Metrics prometheus.Registerer
	// Tracer starts a span for each call; the zero Tracer starts none.
	Tracer telemetry.Tracer
	// OnRequest, if not nil, is called with the id of each request before it is sent to a hub.
	OnRequest func(hub domain.HubID, id string)
}

// WithDefaults returns a copy of c with the defaults for zero fields.
func (c CallerConfig) WithDefaults() CallerConfig {
	c.Timeout = cmp.Or(c.Timeout, domain.DefaultHubTimeout)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return c
}

// Caller sends requests to hubs. It is safe for concurrent use.
type Caller struct {
	cfg      CallerConfig
	conns    *streams.Conns
	presence Presence
	latency  *prometheus.HistogramVec
	// replica is the first level of every token of this process, and of no other process.
	replica string
	subs    []*nats.Subscription

	mu      sync.Mutex
	last    uint64
	pending map[string]chan *nats.Msg // by response subject
}

// NewCaller returns a Caller that is subscribed to answers until Close. The error is the broker
// connection's, or cfg.Validate's.
func NewCaller(conns *streams.Conns, presence Presence, cfg CallerConfig) (*Caller, error) {
	cfg = cfg.WithDefaults()
	if err := domain.CheckFields("caller", cfg); err != nil {
		return nil, err
	}
	c := &Caller{
		cfg: cfg, conns: conns, presence: presence, latency: newLatency(cfg.Metrics),
		replica: strings.ToLower(rand.Text()[:10]), pending: make(map[string]chan *nats.Msg),
	}
	for _, nc := range conns.Shards {
		sub, err := nc.Subscribe(streams.ResponseSubject(streams.AnyHub, c.replica+".>"), c.receive)
		if err != nil {
			c.Close()
			return nil, fmt.Errorf("subscribe to answers of hubs: %w", err)
		}
		c.subs = append(c.subs, sub)
	}
	return c, nil
}

// Close unsubscribes from answers. Calls in flight end with their timeout.
func (c *Caller) Close() {
	for _, sub := range c.subs {
		streams.Unsubscribe(sub)
	}
}

// Call sends a request to a hub: method is one of protocol.Methods, params encode to a JSON object.
// It passes the result, a JSON object, to read, which must not keep it and returns an error fit for
// API callers if the result is not one of the method. A nil read accepts every result.
//
// Errors are ctx's, or a *domain.Error: hub_offline at once; hub_timeout when no answer came in
// time (the hub may have acted); hub_error when the request could not be delivered or the answer is
// invalid; and the hub's own hub_unavailable, not_found, invalid_request and command_refused.
//
// The request has the id of the API request that ctx serves (telemetry.WithRequest), so that both
// can be matched in the logs of the hub. Further calls for the same API request append a number.
// Without an API request the id is a new ULID.
func (c *Caller) Call(
	ctx context.Context, hub domain.HubID, method string, params any,
	read func(result []byte) error,
) error {
	if _, ok := protocol.ErrorsOf(method); !ok {
		return fmt.Errorf("call hub %s: unknown method %q", hub, method)
	}
	began := time.Now()
	ctx, span := c.cfg.Tracer.Start(ctx, method, trace.SpanKindClient)
	id := telemetry.CallID(ctx)
	if id == "" {
		id = ulid.Make().String()
	}
	if span.On() {
		span.Set(
			semconv.RPCSystemNameKey.String("hub_link"), semconv.RPCMethod(method),
			telemetry.KeyHubID.String(string(hub)), telemetry.KeyRequestID.String(id),
		)
	}
	err := c.call(ctx, hub, id, method, params, read)
	span.End(err)
	c.latency.WithLabelValues(method, domain.OutcomeOf(err, outcomeOK)).
		Observe(time.Since(began).Seconds())
	return err
}

func (c *Caller) call(
	ctx context.Context, hub domain.HubID, id, method string, params any,
	read func(result []byte) error,
) error {
	if err := c.CheckOnline(ctx, hub); err != nil {
		return err
	}
	token, subject, answers := c.expect(hub)
	defer c.forget(subject)
	payload, err := encodeRequest(protocol.Request{
		ID: id, Token: token, Method: method, TimeoutMS: c.cfg.Timeout.Milliseconds(),
	}, params)
	if err != nil {
		return fmt.Errorf("call hub %s: %s: %w", hub, method, err)
	}
	if c.cfg.OnRequest != nil {
		c.cfg.OnRequest(hub, id)
	}
	answer, err := c.roundTrip(ctx, hub, subject, payload, answers)
	if err != nil {
		return err
	}
	err = decode(method, id, answer, read)
	if errors.Is(err, &domain.Error{Code: domain.CodeHubError}) {
		c.cfg.Logger.WarnContext(
			ctx, "hub failed a request", "hub_id", hub, "method", method, "request_id", id,
			"error", err,
		)
	}
	return err
}

func encodeRequest(request protocol.Request, params any) ([]byte, error) {
	var err error
	if request.Params, err = json.Marshal(params); err != nil {
		return nil, err
	}
	return json.Marshal(request)
}

// CheckOnline returns hub_offline for a hub that is not connected, as every call does. It returns
// service_unavailable when the broker does not answer for 15 s. Any other error is the broker
// connection's.
func (c *Caller) CheckOnline(ctx context.Context, hub domain.HubID) error {
	if c.presence.Online(hub) {
		return nil
	}
	// The view may lag behind the bucket.
	p, _, err := c.presence.Fetch(ctx, hub)
	if err != nil && ctx.Err() == nil {
		err = jsapi.Unavailable(
			err,
			"it is not known at the moment whether the hub is connected; nothing was sent to it",
		)
	}
	if err != nil {
		return fmt.Errorf("call hub %s: read presence: %w", hub, err)
	}
	if !p.Online {
		return domain.Errorf(domain.CodeHubOffline, "the hub is not connected; nothing was done")
	}
	return nil
}
