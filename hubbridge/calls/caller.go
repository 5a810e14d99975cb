package calls

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
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
	"hubcloud/streams/telemetry"
)

const (
	// defaultTimeout is the contract's.
	defaultTimeout = 10 * time.Second
	// listenTime is how long a hub that is connected may take until it has subscribed to its
	// requests, and listenPause how often that is tried.
	listenTime  = 2 * time.Second
	listenPause = 50 * time.Millisecond
)

// Presence tells whether hubs are connected.
type Presence interface {
	Online(hub domain.HubID) bool
	// Fetch gives what is told of a hub at this moment; false when it has never connected.
	Fetch(ctx context.Context, hub domain.HubID) (domain.Presence, bool, error)
}

// Config is what a Caller may be told.
type Config struct {
	// Timeout is how long a hub has to answer; 10 s when zero.
	Timeout time.Duration
	// Log gets what hubs do wrong; the default logger when nil.
	Log *slog.Logger
	// Metrics gets the caller's metrics; nil for none.
	Metrics prometheus.Registerer
	// Tracer begins a span for each call; the zero value none.
	Tracer telemetry.Tracer
	// Asked hears of each request that is sent to a hub; nil: nobody does.
	Asked func(domain.HubID)
}

// Caller asks hubs. Safe for concurrent use.
type Caller struct {
	conns    *streams.Conns
	presence Presence
	timeout  time.Duration
	log      *slog.Logger
	latency  *prometheus.HistogramVec
	tracer   telemetry.Tracer
	asked    func(domain.HubID)
	// replica is the first level of every token of this process, and of no other.
	replica string
	subs    []*nats.Subscription

	mu      sync.Mutex
	last    uint64
	pending map[string]chan *nats.Msg // by subject
}

// New makes a caller; it listens for answers from then on, until Close. The error is the broker
// connection's.
func New(conns *streams.Conns, presence Presence, cfg Config) (*Caller, error) {
	if cfg.Timeout <= 0 {
		cfg.Timeout = defaultTimeout
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	c := &Caller{
		conns: conns, presence: presence, timeout: cfg.Timeout, log: cfg.Log,
		latency: newLatency(cfg.Metrics), tracer: cfg.Tracer, asked: cfg.Asked,
		replica: strings.ToLower(rand.Text()[:10]), pending: make(map[string]chan *nats.Msg),
	}
	for _, nc := range conns.Shards {
		sub, err := nc.Subscribe(streams.ResponseSubject(streams.AnyHub, c.replica+".>"), c.take)
		if err != nil {
			c.Close()
			return nil, fmt.Errorf("listen for hubs' answers: %w", err)
		}
		c.subs = append(c.subs, sub)
	}
	return c, nil
}

// Close stops listening. Calls under way end with their time-out.
func (c *Caller) Close() {
	for _, sub := range c.subs {
		// fails only when the connection is gone, and the subscription with it
		_ = sub.Unsubscribe()
	}
}

// Call asks a hub for a method (one of link's) with params, a JSON object, and gives what it
// answers, a JSON object, to read, which must not keep it and says with an error fit for an API
// caller why it is no result of the method; nil when only success matters. Errors are
// *domain.Error: hub_offline at once, hub_timeout when no answer came in time (the hub may have
// acted), hub_error when the request could not be delivered or the answer is none, and what the hub
// itself refuses with: hub_unavailable, not_found, invalid_request, command_refused; or ctx's
// error.
//
// The request has the id of the API's request that ctx serves (telemetry.WithRequest), so that it
// is found again in the hub's own log; further calls for the same one have a number behind it, and
// calls for none an id of their own.
func (c *Caller) Call(
	ctx context.Context, hub domain.HubID, method string, params any,
	read func(result []byte) error,
) error {
	if _, ok := errorsOf(method); !ok {
		return fmt.Errorf("call hub %s: no method %q", hub, method)
	}
	began := time.Now()
	ctx, span := c.tracer.Start(ctx, method, trace.SpanKindClient)
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
	c.latency.WithLabelValues(method, outcomeOf(err)).Observe(time.Since(began).Seconds())
	return err
}

func (c *Caller) call(
	ctx context.Context, hub domain.HubID, id, method string, params any,
	read func(result []byte) error,
) error {
	if err := c.MustBeOnline(ctx, hub); err != nil {
		return err
	}
	raw, err := json.Marshal(params)
	if err != nil {
		return fmt.Errorf("call hub %s: %s: %w", hub, method, err)
	}
	token, subject, answers := c.expect(hub)
	defer c.forget(subject)
	payload, err := json.Marshal(
		protocol.Request{
			ID:        id,
			Token:     token,
			Method:    method,
			Params:    raw,
			TimeoutMS: c.timeout.Milliseconds(),
		},
	)
	if err != nil {
		return fmt.Errorf("call hub %s: %s: %w", hub, method, err)
	}
	if c.asked != nil {
		c.asked(hub)
	}
	answer, err := c.exchange(ctx, hub, subject, payload, answers)
	if err != nil {
		return err
	}
	err = decode(method, id, answer, read)
	if errors.Is(err, &domain.Error{Code: domain.CodeHubError}) {
		c.log.WarnContext(
			ctx, "a hub failed a request", "hub_id", hub, "method", method, "request_id", id,
			"error", err,
		)
	}
	return err
}

// MustBeOnline refuses a hub that is not connected with hub_offline, as every call does. When the
// broker cannot tell for 15 s, it is service_unavailable. Any other error is the broker
// connection's.
func (c *Caller) MustBeOnline(ctx context.Context, hub domain.HubID) error {
	if c.presence.Online(hub) {
		return nil
	}
	// The view may be a moment behind the bucket, which has what was told last.
	p, _, err := c.presence.Fetch(ctx, hub)
	if err != nil && ctx.Err() == nil {
		err = streams.Unavailable(
			err,
			"it is not known at the moment whether the hub is connected; nothing was sent to it",
		)
	}
	if err != nil {
		return fmt.Errorf("call hub %s: is it online: %w", hub, err)
	}
	if !p.Online {
		return domain.Errorf(domain.CodeHubOffline, "the hub is not connected; nothing was done")
	}
	return nil
}

// expect makes a token and the subject on which its answer comes. The token's levels are those of
// an MQTT topic.
func (c *Caller) expect(hub domain.HubID) (token, subject string, answers chan *nats.Msg) {
	answers = make(chan *nats.Msg, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	number := strconv.FormatUint(c.last, 36)
	subject = streams.ResponseSubject(hub, c.replica+"."+number)
	c.pending[subject] = answers
	return c.replica + "/" + number, subject, answers
}

func (c *Caller) forget(subject string) {
	c.mu.Lock()
	delete(c.pending, subject)
	c.mu.Unlock()
}

// take gives an answer to who waits for it. The hub's id is in the subject, and the broker lets a
// hub publish under its own alone.
func (c *Caller) take(msg *nats.Msg) {
	c.mu.Lock()
	answers := c.pending[msg.Subject]
	c.mu.Unlock()
	if answers == nil {
		return // late, or asked by nobody
	}
	select {
	case answers <- msg:
	default: // a second answer
	}
}

// exchange sends a request and waits for the answer. The request names the answer's subject as its
// reply, so that the broker says there when nobody listens to it: a hub that has connected a moment
// ago has not subscribed yet, so that is tried again for a while.
func (c *Caller) exchange(
	ctx context.Context, hub domain.HubID, subject string, payload []byte, answers <-chan *nats.Msg,
) ([]byte, error) {
	nc, asked := c.conns.Shard(hub), time.Now()
	timer := time.NewTimer(c.timeout)
	defer timer.Stop()
	for {
		if err := nc.PublishRequest(streams.RequestSubject(hub), subject, payload); err != nil {
			c.log.Warn("a request cannot be sent", "hub_id", hub, "error", err)
			return nil, domain.Errorf(
				domain.CodeHubError, "the request could not be sent to the hub",
			)
		}
		select {
		case msg := <-answers:
			if msg.Header.Get("Status") != "503" {
				return msg.Data, nil
			}
		case <-timer.C:
			return nil, domain.Errorf(
				domain.CodeHubTimeout, "the hub did not answer within %v; it may still have acted",
				c.timeout,
			)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if err := c.MustBeOnline(ctx, hub); err != nil {
			return nil, err
		}
		if time.Since(asked) > min(listenTime, c.timeout/2) {
			return nil, domain.Errorf(
				domain.CodeHubError,
				"the request could not be sent to the hub: it is connected and does not listen",
			)
		}
		select {
		case <-time.After(listenPause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
