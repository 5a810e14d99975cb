package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"

	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"hubcloud/streams/telemetry"
)

// statusClientGone stands in logs and metrics for a request whose client closed the connection
// before the answer. It is never sent.
const statusClientGone = 499

// report logs and counts a request that is over, and ends its span.
func (req *request) report() {
	took := req.api.Now().Sub(req.start)
	req.api.metrics.inFlight.Dec()
	if req.route != nil {
		req.route.metrics.observe(req.status, took)
	}
	req.endSpan()
	level := req.logLevel()
	if !req.api.Logger.Enabled(req.ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 12)
	attrs = append(attrs, slog.String("request_id", req.id), slog.String("method", req.http.Method))
	if req.route != nil {
		attrs = append(attrs, slog.String("route", req.route.pattern))
	}
	attrs = append(
		attrs, slog.Int("status", req.status),
		slog.Float64("duration_ms", float64(took.Microseconds())/1000),
		slog.Int64("bytes", req.bytes), slog.String("remote", req.remote.String()),
	)
	if req.key.ID != "" {
		attrs = append(
			attrs, slog.String("key_id", req.key.ID), slog.String("org_id", req.key.Reach.OrgID),
		)
	}
	if req.ended != "" {
		attrs = append(attrs, slog.String("ended", req.ended), slog.Int("events", req.events))
	}
	if req.err != nil {
		attrs = append(attrs, slog.String("error", req.err.Error()))
	}
	req.api.Logger.LogAttrs(req.ctx, level, "request", attrs...)
}

// logLevel returns the level of the request's log line.
func (req *request) logLevel() slog.Level {
	switch {
	case req.err != nil && req.status == http.StatusServiceUnavailable:
		return slog.LevelWarn
	case req.err != nil && !errors.Is(req.err, context.Canceled):
		return slog.LevelError
	case req.route != nil && req.route.quiet:
		return slog.LevelDebug
	default:
		return slog.LevelInfo
	}
}

// endSpan completes and ends the request's span. The span has the route and never the path or
// query: the portal's links contain secrets.
func (req *request) endSpan() {
	if req.span.On() {
		req.span.Name(req.http.Method + " " + req.route.pattern)
		req.span.Set(
			semconv.HTTPRequestMethodKey.String(req.http.Method),
			semconv.HTTPRoute(req.route.pattern),
			semconv.HTTPResponseStatusCode(req.status),
			semconv.ClientAddress(req.remote.String()),
			semconv.NetworkProtocolVersion(
				strconv.Itoa(req.http.ProtoMajor)+"."+strconv.Itoa(req.http.ProtoMinor),
			),
			semconv.UserAgentOriginal(req.http.UserAgent()),
			telemetry.KeyRequestID.String(req.id),
		)
		if req.key.ID != "" {
			req.span.Set(
				telemetry.KeyKeyID.String(req.key.ID), telemetry.KeyOrgID.String(req.key.Reach.OrgID),
			)
		}
		if req.status >= http.StatusInternalServerError {
			req.span.Fail(strconv.Itoa(req.status), "")
		}
	}
	req.span.End(nil)
}
