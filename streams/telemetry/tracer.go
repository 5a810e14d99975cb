package telemetry

import (
	"context"
	"errors"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"hubcloud/domain"
)

// scope names the instrumentation of all spans.
const scope = "hubcloud"

// Attributes without a name in the semantic conventions.
const (
	KeyRequestID = attribute.Key("hubcloud.request_id")
	KeyHubID     = attribute.Key("hubcloud.hub_id")
	KeyCommandID = attribute.Key("hubcloud.command_id")
	KeyOrgID     = attribute.Key("hubcloud.org_id")
	KeyKeyID     = attribute.Key("hubcloud.key_id")
	KeyOutcome   = attribute.Key("hubcloud.outcome")
)

// Tracer starts spans. Its zero value is off. It is safe for concurrent use.
type Tracer struct{ tracer trace.Tracer }

// NewTracer returns a Tracer whose spans go to provider.
func NewTracer(provider trace.TracerProvider) Tracer { return Tracer{provider.Tracer(scope)} }

// On reports whether spans are recorded.
func (t Tracer) On() bool { return t.tracer != nil }

// Start starts a span below the span of ctx and returns a context with the new span. When tracing
// is off, it returns ctx itself.
func (t Tracer) Start(
	ctx context.Context, name string, kind trace.SpanKind,
) (context.Context, Span) {
	if t.tracer == nil {
		return ctx, Span{}
	}
	ctx, span := t.tracer.Start(ctx, name, trace.WithSpanKind(kind))
	return ctx, Span{span}
}

// StartRequest starts the span of an HTTP request. The span continues the trace of the request's
// `traceparent` header (W3C Trace Context).
func (t Tracer) StartRequest(r *http.Request) (context.Context, Span) {
	if t.tracer == nil {
		return r.Context(), Span{}
	}
	ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	return t.Start(ctx, r.Method, trace.SpanKindServer)
}

// Span is a started span. The methods of its zero value do nothing.
type Span struct{ span trace.Span }

// On reports whether the span is recorded.
func (s Span) On() bool { return s.span != nil && s.span.IsRecording() }

// Set sets attributes. Check On first: building attributes allocates.
func (s Span) Set(attributes ...attribute.KeyValue) {
	if s.span != nil {
		s.span.SetAttributes(attributes...)
	}
}

// Name renames the span.
func (s Span) Name(name string) {
	if s.span != nil {
		s.span.SetName(name)
	}
}

// Fail marks the span as failed. kind is the error's type, from a closed set of words.
func (s Span) Fail(kind, message string) {
	if s.span != nil {
		s.span.SetAttributes(semconv.ErrorTypeKey.String(kind))
		s.span.SetStatus(codes.Error, message)
	}
}

// End ends the span. A non-nil err marks it as failed, with the error code as its type.
func (s Span) End(err error) {
	if s.span == nil {
		return
	}
	if err != nil && s.span.IsRecording() {
		s.Fail(kindOf(err), err.Error())
	}
	s.span.End()
}

func kindOf(err error) string {
	switch {
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	}
	return string(domain.CodeOf(err))
}

// Continue returns a context that is canceled with ctx and whose spans are children of the span in
// with. Without such a span it returns ctx.
func Continue(ctx, with context.Context) context.Context {
	if span := trace.SpanContextFromContext(with); span.IsValid() {
		return trace.ContextWithSpanContext(ctx, span)
	}
	return ctx
}

// Inject writes the trace of ctx into header, in the form that StartRequest and Extract read. It
// does nothing if ctx has no trace.
func Inject(ctx context.Context, header propagation.TextMapCarrier) {
	propagation.TraceContext{}.Inject(ctx, header)
}

// Extract returns a context that continues the trace in header.
func Extract(ctx context.Context, header propagation.TextMapCarrier) context.Context {
	return propagation.TraceContext{}.Extract(ctx, header)
}
