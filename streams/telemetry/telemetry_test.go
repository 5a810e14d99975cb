package telemetry_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"hubcloud/domain"
	"hubcloud/streams/telemetry"
)

// TestOffCostsNothing: without a collector a span takes no memory, and gives back the context that
// it was given.
func TestOffCostsNothing(t *testing.T) {
	var tracer telemetry.Tracer
	ctx := t.Context()
	request := httptest.NewRequest(http.MethodGet, "/", nil)
	request.Header.Set("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	if got := testing.AllocsPerRun(1000, func() {
		under, span := tracer.Start(ctx, "name", trace.SpanKindInternal)
		if span.On() || under != ctx {
			t.Fatal("it is on")
		}
		span.End(context.Canceled)
		_, span = tracer.StartRequest(request)
		span.End(nil)
	}); got != 0 {
		t.Errorf("%v allocations", got)
	}
}

// TestSpans: a span is below that of its context, a request goes on with its client's trace, and
// failures say of which kind they are.
func TestSpans(t *testing.T) {
	t.Parallel()
	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
	tracer := telemetry.NewTracer(provider)
	request := httptest.NewRequest(http.MethodGet, "/", nil)
	request.Header.Set("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	ctx, outer := tracer.StartRequest(request)
	outer.Name("GET /v1/sites")
	elsewhere := telemetry.Continue(t.Context(), ctx)
	for _, err := range []error{
		nil, domain.Errorf(domain.CodeHubTimeout, "no answer"), context.Canceled,
		context.DeadlineExceeded, errors.New("the disk is full"),
	} {
		_, inner := tracer.Start(elsewhere, "inner", trace.SpanKindClient)
		inner.Set(attribute.String("key", "value"))
		inner.End(err)
	}
	outer.End(nil)
	ended := recorder.Ended()
	if len(ended) != 6 {
		t.Fatalf("%d spans have ended", len(ended))
	}
	for i, want := range []string{"", "hub_timeout", "canceled", "timeout", "internal_error"} {
		span, kind := ended[i], ""
		for _, attr := range span.Attributes() {
			if attr.Key == "error.type" {
				kind = attr.Value.AsString()
			}
		}
		if kind != want || (span.Status().Code == codes.Error) != (want != "") ||
			span.SpanKind() != trace.SpanKindClient {
			t.Errorf(
				"span %d is of kind %q, wanted %q; its status is %v", i, kind, want, span.Status(),
			)
		}
		if span.Parent().SpanID() != ended[5].SpanContext().SpanID() {
			t.Errorf("span %d is not below the request's", i)
		}
	}
	if got := ended[5]; got.Name() != "GET /v1/sites" ||
		got.SpanContext().TraceID().String() != "0af7651916cd43dd8448eb211c80319c" ||
		got.Parent().SpanID().String() != "b7ad6b7169203331" ||
		!got.Parent().IsRemote() {
		t.Errorf("the request's span is %v below %v", got.SpanContext(), got.Parent())
	}
	if telemetry.Continue(t.Context(), context.Background()) != t.Context() {
		t.Error("a context that has no trace changes one")
	}
}

// TestLogHandler: lines of a span say whose they are, and others are as they were.
func TestLogHandler(t *testing.T) {
	t.Parallel()
	tracer := telemetry.NewTracer(sdktrace.NewTracerProvider())
	ctx, span := tracer.Start(t.Context(), "name", trace.SpanKindInternal)
	defer span.End(nil)
	ids := trace.SpanContextFromContext(ctx)
	var text bytes.Buffer
	log := slog.New(telemetry.LogHandler(slog.NewTextHandler(&text, nil))).With("shard", 3)
	log.InfoContext(ctx, "with")
	log.Info("without")
	log.DebugContext(ctx, "neither")
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")
	if len(lines) != 2 ||
		!strings.HasSuffix(
			lines[0],
			"msg=with shard=3 trace_id="+ids.TraceID().String()+" span_id="+ids.SpanID().String(),
		) ||
		!strings.HasSuffix(lines[1], "msg=without shard=3") {
		t.Errorf("the log is %s", text.String())
	}
}

// TestCallID: the first call for a request has its id, and each other one another.
func TestCallID(t *testing.T) {
	t.Parallel()
	ctx := telemetry.WithRequest(t.Context(), "R1")
	for _, want := range []string{"R1", "R1-2", "R1-3"} {
		if got := telemetry.CallID(ctx); got != want {
			t.Errorf("%q, wanted %q", got, want)
		}
	}
	if got := telemetry.RequestID(ctx); got != "R1" {
		t.Errorf("the request is %q", got)
	}
	if telemetry.RequestID(t.Context()) != "" || telemetry.CallID(t.Context()) != "" ||
		telemetry.CallID(telemetry.WithRequest(t.Context(), "")) != "" {
		t.Error("a context that serves no request has an id")
	}
}
