package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"golang.org/x/time/rate"

	"hubcloud/streams/telemetry"
)

const (
	// serviceName is the default of OTEL_SERVICE_NAME.
	serviceName = "hubcloud"
	// failureLogInterval is the shortest time between two log lines about failed exports.
	failureLogInterval = time.Minute
)

// errProtocol reports an unsupported value of OTEL_EXPORTER_OTLP_PROTOCOL.
var errProtocol = errors.New("must be http/protobuf or grpc")

// traceSender exports spans to a collector by OTLP, the OpenTelemetry protocol. It is configured
// by OpenTelemetry's standard environment variables and is on only if one of them names a
// collector: OTEL_EXPORTER_OTLP_ENDPOINT, or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT for traces alone.
//
// OTEL_EXPORTER_OTLP_PROTOCOL (…_TRACES_PROTOCOL) is http/protobuf, the default, or grpc.
// OTEL_EXPORTER_OTLP_HEADERS, _TIMEOUT, _COMPRESSION, _INSECURE and _CERTIFICATE,
// OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES, OTEL_TRACES_SAMPLER and its _ARG, OTEL_BSP_… and the
// limits of spans are read by the SDK. OTEL_SDK_DISABLED=true and OTEL_TRACES_EXPORTER=none switch
// the exporter off.
//
// Spans wait in a bounded queue (2,048 spans; OTEL_BSP_MAX_QUEUE_SIZE). While the collector cannot
// be reached, spans that do not fit are dropped. Failed exports are logged at most once a minute.
//
// Its zero value exports none.
type traceSender struct{ provider *sdktrace.TracerProvider }

// startTraces returns a traceSender as configured by the environment, for a program of the given
// version. It does not connect to the collector, which may start later. Errors name the variable
// whose value is not allowed; errProtocol is one.
func startTraces(ctx context.Context, version string, logger *slog.Logger) (traceSender, error) {
	if !tracesWanted() {
		return traceSender{}, nil
	}
	exporter, err := newTraceExporter(ctx, serviceName+"/"+version)
	if err != nil {
		return traceSender{}, err
	}
	about, err := resource.New(
		ctx,
		resource.WithTelemetrySDK(),
		resource.WithHost(),
		resource.WithAttributes(
			semconv.ServiceName(serviceName), semconv.ServiceVersion(version),
			semconv.ServiceInstanceID(rand.Text()),
		),
		resource.WithFromEnv(), // last, so that the environment wins
	)
	if err != nil {
		return traceSender{}, fmt.Errorf("OpenTelemetry: OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	// The SDK has one error handler for the process.
	failures := rate.Sometimes{First: 1, Interval: failureLogInterval}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		failures.Do(func() { logger.Warn("trace export failed", "error", err) })
	}))
	return traceSender{
		sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about)),
	}, nil
}

// tracesWanted reports whether the environment names a collector and does not switch the exporter
// off.
func tracesWanted() bool {
	return firstVariable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT") != "" &&
		!strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") &&
		os.Getenv("OTEL_TRACES_EXPORTER") != "none"
}

// newTraceExporter returns an exporter whose requests have a User-Agent, unless the environment
// sets another one.
func newTraceExporter(ctx context.Context, userAgent string) (*otlptrace.Exporter, error) {
	client, err := newOTLPClient(userAgent)
	if err != nil {
		return nil, err
	}
	exporter, err := otlptrace.New(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("OpenTelemetry: %w", err)
	}
	return exporter, nil
}

// firstVariable returns the value of the first of the named variables that is set and not empty.
func firstVariable(names ...string) string {
	for _, name := range names {
		if value := os.Getenv(name); value != "" {
			return value
		}
	}
	return ""
}

// Tracer returns a tracer whose spans are exported.
func (s traceSender) Tracer() telemetry.Tracer {
	if s.provider == nil {
		return telemetry.Tracer{}
	}
	return telemetry.NewTracer(s.provider)
}

// Stop exports the queued spans until ctx ends, then drops the rest.
func (s traceSender) Stop(ctx context.Context) error {
	if s.provider == nil {
		return nil
	}
	return s.provider.Shutdown(ctx)
}
