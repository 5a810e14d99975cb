// Package otlp sends spans to a collector by OTLP, the OpenTelemetry protocol, as the standard
// environment variables of OpenTelemetry say, and only when they name a collector:
// OTEL_EXPORTER_OTLP_ENDPOINT, or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT for traces alone.
//
// OTEL_EXPORTER_OTLP_PROTOCOL (…_TRACES_PROTOCOL) is http/protobuf, the default, or grpc.
// OTEL_EXPORTER_OTLP_HEADERS, _TIMEOUT, _COMPRESSION, _INSECURE and _CERTIFICATE,
// OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES, OTEL_TRACES_SAMPLER and its _ARG, OTEL_BSP_… and the
// limits of spans are read by the SDK; OTEL_SDK_DISABLED=true and OTEL_TRACES_EXPORTER=none switch
// it off.
//
// Spans wait for the collector in a queue that is bounded (2,048 spans; OTEL_BSP_MAX_QUEUE_SIZE):
// with the collector away what does not fit is dropped. Failures are told to the log once a minute
// at most.
package otlp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"golang.org/x/time/rate"

	"hubcloud/streams/telemetry"
)

const (
	// serviceName is what the service is called unless OTEL_SERVICE_NAME or
	// OTEL_RESOURCE_ATTRIBUTES say otherwise.
	serviceName = "hubcloud"
	// complainEvery is how often the log hears of a collector that takes nothing.
	complainEvery = time.Minute
)

// ErrProtocol says that OTEL_EXPORTER_OTLP_PROTOCOL names a protocol that is not spoken here.
var ErrProtocol = errors.New("is neither http/protobuf nor grpc")

// Sender sends spans. Its zero value sends none.
type Sender struct{ provider *sdktrace.TracerProvider }

// Start makes the sender that the environment asks for. It reaches for no collector: that may come
// later. The errors are those of variables that say what cannot be, such as ErrProtocol.
func Start(ctx context.Context, log *slog.Logger) (Sender, error) {
	if !Wanted() {
		return Sender{}, nil
	}
	exporter, err := newExporter(ctx)
	if err != nil {
		return Sender{}, err
	}
	version := ""
	if build, ok := debug.ReadBuildInfo(); ok {
		version = build.Main.Version
	}
	about, err := resource.New(
		ctx,
		resource.WithTelemetrySDK(),
		resource.WithHost(),
		resource.WithAttributes(
			semconv.ServiceName(serviceName), semconv.ServiceVersion(version),
			semconv.ServiceInstanceID(uuid.NewString()),
		),
		resource.WithFromEnv(), // last: what it says counts
	)
	if err != nil {
		return Sender{}, fmt.Errorf("OpenTelemetry: OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	// The library keeps one handler for the process.
	complaints := rate.Sometimes{First: 1, Interval: complainEvery}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		complaints.Do(func() { log.Warn("traces do not get out", "error", err) })
	}))
	return Sender{
		sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about)),
	}, nil
}

// Wanted says whether the environment names a collector, and nothing switches it off.
func Wanted() bool {
	return first("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT") != "" &&
		!strings.EqualFold(
			os.Getenv("OTEL_SDK_DISABLED"), "true",
		) && os.Getenv("OTEL_TRACES_EXPORTER") != "none"
}

func newExporter(ctx context.Context) (*otlptrace.Exporter, error) {
	var client otlptrace.Client
	switch protocol := first("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"); protocol {
	case "", "http/protobuf":
		client = otlptracehttp.NewClient()
	case "grpc":
		client = otlptracegrpc.NewClient()
	default:
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL: %q %w", protocol, ErrProtocol)
	}
	exporter, err := otlptrace.New(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("OpenTelemetry: %w", err)
	}
	return exporter, nil
}

// first gives the value of the first variable that has one.
func first(names ...string) string {
	for _, name := range names {
		if value := os.Getenv(name); value != "" {
			return value
		}
	}
	return ""
}

// Tracer gives what begins spans that are sent.
func (s Sender) Tracer() telemetry.Tracer {
	if s.provider == nil {
		return telemetry.Tracer{}
	}
	return telemetry.NewTracer(s.provider)
}

// Stop sends what waits, for as long as ctx lasts, and then drops it.
func (s Sender) Stop(ctx context.Context) error {
	if s.provider == nil {
		return nil
	}
	return s.provider.Shutdown(ctx)
}
