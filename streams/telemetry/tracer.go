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

// Attributes that the semantic conventions have no name for.
const (
	KeyRequestID = attribute.Key("hubcloud.request_id")
	KeyHubID     = attribute.Key("hubcloud.hub_id")
	KeyCommandID = attribute.Key("hubcloud.command_id")
	KeyOrgID     = attribute.Key("hubcloud.org_id")
	KeyKeyID     = attribute.Key("hubcloud.key_id")
	KeyOutcome   = attribute.Key("hubcloud.outcome")
)

// Tracer begins spans. The zero value is off. It is safe for concurrent use.
type Tracer struct{ tracer trace.Tracer }

// NewTracer makes a Tracer whose spans go to the provider.
func NewTracer(provider trace.TracerProvider) Tracer { return Tracer{provider.Tracer(scope)} }

// On says whether spans go anywhere.
func (t Tracer) On() bool { return t.tracer != nil }

// Start begins a span below that of ctx, and gives a context with it. Off, it gives ctx back.
func (t Tracer) Start(
	ctx context.Context, name string, kind trace.SpanKind,
) (context.Context, Span) {
	if t.tracer == nil {
		return ctx, Span{}
	}
	ctx, span := t.tracer.Start(ctx, name, trace.WithSpanKind(kind))
	return ctx, Span{span}
}

// StartRequest begins the span of an HTTP request, which continues the trace of its header
// `traceparent` (W3C Trace Context).
func (t Tracer) StartRequest(r *http.Request) (context.Context, Span) {
	if t.tracer == nil {
		return r.Context(), Span{}
	}
	ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	return t.Start(ctx, r.Method, trace.SpanKindServer)
}

// Span is a span that has begun; the zero value is none, and its methods do nothing.
type Span struct{ span trace.Span }

// On says whether what is set of the span goes anywhere.
func (s Span) On() bool { return s.span != nil && s.span.IsRecording() }

// Set sets attributes. Ask On first: making them costs memory.
func (s Span) Set(attributes ...attribute.KeyValue) {
	if s.span != nil {
		s.span.SetAttributes(attributes...)
	}
}

// Name gives the span another name.
func (s Span) Name(name string) {
	if s.span != nil {
		s.span.SetName(name)
	}
}

// Fail marks the span as failed, with the kind of error: a word of a closed set.
func (s Span) Fail(kind, message string) {
	if s.span != nil {
		s.span.SetAttributes(semconv.ErrorTypeKey.String(kind))
		s.span.SetStatus(codes.Error, message)
	}
}

// End ends the span. An err is the kind of failure that its code says.
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

// Continue gives a context whose spans are below the one that ctx has, though it ends with another
// one.
func Continue(ctx, with context.Context) context.Context {
	if span := trace.SpanContextFromContext(with); span.IsValid() {
		return trace.ContextWithSpanContext(ctx, span)
	}
	return ctx
}

// Inject puts the trace of ctx into a header, as StartRequest reads it; without one it does
// nothing.
func Inject(ctx context.Context, header propagation.TextMapCarrier) {
	propagation.TraceContext{}.Inject(ctx, header)
}

// Extract gives a context that continues the trace of a header.
func Extract(ctx context.Context, header propagation.TextMapCarrier) context.Context {
	return propagation.TraceContext{}.Extract(ctx, header)
}
