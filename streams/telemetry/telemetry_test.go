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

// TestSpans checks that a span is a child of its context's span, that a request continues its
// client's trace, and that a failed span has the error's type.
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
		t.Fatalf("ended spans: got %d, want 6", len(ended))
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
				"span %d: got error type %q and status %v, want type %q", i, kind, span.Status(),
				want,
			)
		}
		if span.Parent().SpanID() != ended[5].SpanContext().SpanID() {
			t.Errorf("span %d: its parent is not the request's span", i)
		}
	}
	if got := ended[5]; got.Name() != "GET /v1/sites" ||
		got.SpanContext().TraceID().String() != "0af7651916cd43dd8448eb211c80319c" ||
		got.Parent().SpanID().String() != "b7ad6b7169203331" ||
		!got.Parent().IsRemote() {
		t.Errorf(
			"request span: got %v below %v, want the client's", got.SpanContext(), got.Parent(),
		)
	}
	if telemetry.Continue(t.Context(), context.Background()) != t.Context() {
		t.Error("Continue with a context without a trace changed the context")
	}
}

// TestLogHandler checks that only records of a span have its ids.
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
		t.Errorf("got log %s", text.String())
	}
}

// TestCallID checks that the first call has the request's id and every further call its own.
func TestCallID(t *testing.T) {
	t.Parallel()
	ctx := telemetry.WithRequest(t.Context(), "R1")
	for _, want := range []string{"R1", "R1-2", "R1-3"} {
		if got := telemetry.CallID(ctx); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := telemetry.RequestID(ctx); got != "R1" {
		t.Errorf("RequestID: got %q, want R1", got)
	}
	if telemetry.RequestID(t.Context()) != "" || telemetry.CallID(t.Context()) != "" ||
		telemetry.CallID(telemetry.WithRequest(t.Context(), "")) != "" {
		t.Error("a context without a request has an id")
	}
}
