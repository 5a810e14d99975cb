package httpapi

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/oklog/ulid/v2"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"hubcloud/domain"
	"hubcloud/streams/telemetry"
)

// managementTimeout is how long a request that is not held may take. It is longer than the 15 s for
// which the parts of the service wait for a leader. Past it the answer is service_unavailable:
// something that it waited for stands still.
const managementTimeout = 20 * time.Second

// statusClientGone is what logs and metrics show for a request whose client did not wait for the
// answer. It is never sent.
const statusClientGone = 499

// exchange is one request and its answer. It is the http.ResponseWriter that routes get, so that
// whatever they write is counted.
type exchange struct {
	api    *api
	w      http.ResponseWriter
	r      *http.Request
	ctx    context.Context
	id     string
	start  time.Time
	remote netip.Addr
	route  *route
	span   telemetry.Span
	// key is the caller's, once it is known to be valid.
	key domain.KeyAccess

	// reserved is how much memory is reserved for the answer, which counts for owner.
	owner    answerOwner
	reserved int64

	status int
	bytes  int64
	// err is the cause of a failure, for the log.
	err error
	// ended says why an event stream ended, and events how many went out, for the log.
	ended  string
	events int
	// values holds the header fields of every answer, so that they take one allocation together.
	values [5]string
}

// begin starts an exchange: from here on its answer has a request id.
func (a *api) begin(w http.ResponseWriter, r *http.Request) *exchange {
	now := a.Now()
	x := &exchange{
		api:    a,
		w:      w,
		r:      r,
		ctx:    r.Context(),
		id:     newRequestID(now),
		start:  now,
		remote: a.clientAddress(r),
	}
	x.setHeader(0, "X-Request-Id", x.id)
	x.limitBodyTime()
	a.metrics.inFlight.Inc()
	return x
}

// newRequestID makes a ULID. Its randomness only has to be unique, not secret.
func newRequestID(now time.Time) string {
	id := ulid.ULID{}
	binary.BigEndian.PutUint64(id[8:], rand.Uint64())
	binary.BigEndian.PutUint16(id[6:], uint16(rand.Uint32()))
	if err := id.SetTime(ulid.Timestamp(now)); err != nil {
		panic(fmt.Sprintf("httpapi: the clock is beyond the year 10889: %v", err))
	}
	return id.String()
}

// setHeader sets a header field under exactly that spelling, with the slot of values that belongs
// to it.
func (x *exchange) setHeader(slot int, name, value string) {
	x.values[slot] = value
	x.w.Header()[name] = x.values[slot : slot+1 : slot+1]
}

// Header, WriteHeader and Write make x the http.ResponseWriter of its request, and Unwrap lets
// http.ResponseController through to the server's own.
func (x *exchange) Header() http.Header         { return x.w.Header() }
func (x *exchange) Unwrap() http.ResponseWriter { return x.w }

func (x *exchange) WriteHeader(status int) {
	if x.status == 0 {
		x.status = status
	}
	x.w.WriteHeader(status)
}

func (x *exchange) Write(p []byte) (int, error) {
	if x.status == 0 {
		x.status = http.StatusOK
	}
	var n int
	var err error
	if len(p) > answerPart {
		n, err = x.writeParts(p)
	} else {
		n, err = x.w.Write(p)
	}
	x.bytes += int64(n)
	return n, err
}

// ServeHTTP answers a request that the router found the route of.
func (rt *route) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := w.(*exchange) // exchanges hands on nothing else
	x.route = rt
	if !rt.quiet {
		x.ctx, x.span = rt.api.Tracer.StartRequest(r)
	}
	if err := rt.run(x); err != nil {
		x.refuse(err)
	}
}

// run asks what the route asks, in the order of refusals, and then lets it answer.
func (rt *route) run(x *exchange) error {
	began := time.Now()
	switch rt.access {
	case forKey:
		if err := rt.api.authenticate(x); err != nil {
			return err
		}
		if err := requireScope(x.key, rt.scope); err != nil {
			return err
		}
	case forAddress:
		if err := x.spendOfAddress(); err != nil {
			return err
		}
	}
	if !rt.takesBody {
		if err := x.ignoreBody(); err != nil {
			return err
		}
	}
	if rt.live || rt.access == forAddress {
		x.ctx = telemetry.WithRequest(x.ctx, x.id) // for what is asked of hubs, and told of by them
	}
	if !rt.held {
		ctx, cancel := context.WithTimeout(x.ctx, x.limitTime()-time.Since(began))
		defer cancel()
		x.ctx = ctx
	}
	return rt.handle(x)
}

// limitTime gives how long the request may take. One that asks a hub may first wait for another
// request of the same, at another replica even, and then for the hub; that is more than the server
// gives an answer.
func (x *exchange) limitTime() time.Duration {
	if !x.route.live {
		return managementTimeout
	}
	limit := managementTimeout + 2*x.api.HubTimeout
	_ = http.NewResponseController(x.w).SetWriteDeadline(time.Now().Add(limit + writeTimeout))
	return limit
}

// end is deferred: it makes an answer of a panic, and tells the log and the metrics what happened.
func (x *exchange) end() {
	thrown := recover()
	x.unreserve()
	if thrown != nil && thrown != http.ErrAbortHandler {
		x.err = fmt.Errorf("panic: %v\n%s", thrown, debug.Stack())
		if x.status == 0 {
			x.refuse(x.err)
			thrown = nil
		} else {
			// Part of an answer is out: breaking the connection off is the only way to say that it
			// is not whole.
			thrown = http.ErrAbortHandler
		}
	}
	x.report()
	if thrown != nil {
		panic(thrown)
	}
}

// report writes the request's log line and counts it.
func (x *exchange) report() {
	took := x.api.Now().Sub(x.start)
	x.api.metrics.inFlight.Dec()
	if x.route != nil {
		x.route.count.observe(x.status, took)
	}
	x.endSpan()
	level := slog.LevelInfo
	switch {
	case x.err != nil && x.status == http.StatusServiceUnavailable:
		level = slog.LevelWarn
	case x.err != nil && !errors.Is(x.err, context.Canceled):
		level = slog.LevelError
	case x.route != nil && x.route.quiet:
		level = slog.LevelDebug
	}
	if !x.api.Log.Enabled(x.ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 12)
	attrs = append(attrs, slog.String("request_id", x.id), slog.String("method", x.r.Method))
	if x.route != nil {
		attrs = append(attrs, slog.String("route", x.route.pattern))
	}
	attrs = append(
		attrs, slog.Int("status", x.status),
		slog.Float64("duration_ms", float64(took.Microseconds())/1000),
		slog.Int64("bytes", x.bytes), slog.String("remote", x.remote.String()),
	)
	if x.key.ID != "" {
		attrs = append(attrs, slog.String("key_id", x.key.ID), slog.String("org_id", x.key.OrgID))
	}
	if x.ended != "" {
		attrs = append(attrs, slog.String("ended", x.ended), slog.Int("events", x.events))
	}
	if x.err != nil {
		attrs = append(attrs, slog.String("error", x.err.Error()))
	}
	x.api.Log.LogAttrs(x.ctx, level, "request", attrs...)
}

// endSpan tells the request's span what became of it. It has no path and no query: those of the
// portal's links are secrets.
func (x *exchange) endSpan() {
	if x.span.On() {
		x.span.Name(x.r.Method + " " + x.route.pattern)
		x.span.Set(
			semconv.HTTPRequestMethodKey.String(x.r.Method),
			semconv.HTTPRoute(x.route.pattern),
			semconv.HTTPResponseStatusCode(x.status),
			semconv.ClientAddress(x.remote.String()),
			semconv.NetworkProtocolVersion(
				strconv.Itoa(x.r.ProtoMajor)+"."+strconv.Itoa(x.r.ProtoMinor),
			),
			semconv.UserAgentOriginal(x.r.UserAgent()),
			telemetry.KeyRequestID.String(x.id),
		)
		if x.key.ID != "" {
			x.span.Set(telemetry.KeyKeyID.String(x.key.ID), telemetry.KeyOrgID.String(x.key.OrgID))
		}
		if x.status >= http.StatusInternalServerError {
			x.span.Fail(strconv.Itoa(x.status), "")
		}
	}
	x.span.End(nil)
}

// origin is what a command of this request brings with it.
func (x *exchange) origin() domain.Origin {
	return domain.Origin{
		At:        x.start,
		Actor:     domain.Actor{Kind: domain.ActorKey, ID: x.key.ID},
		RequestID: x.id,
	}
}
