package observe

import (
	"net"
	"strings"
	"testing"
	"time"

	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// TestGRPC exports spans over gRPC, with the sampling and the service name that environment
// variables set, while the log is text.
func TestGRPC(t *testing.T) {
	t.Parallel()
	c := &collected{}
	service := harness.StartWith(t, []string{
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=" + c.overGRPC(t),
		"OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_SERVICE_NAME=buildings",
		"OTEL_RESOURCE_ATTRIBUTES=deployment.environment.name=trial",
		"OTEL_TRACES_SAMPLER=parentbased_always_off",
	})
	tenant := harness.NewTenant(t, service, "Traced")
	const sampled = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	const unsampled = "00-0af7651916cd43dd8448eb211c80319d-b7ad6b7169203331-00"
	for _, parent := range []string{sampled, unsampled, "nonsense"} {
		tenant.Get("/sites", "traceparent", parent)
	}
	replica := service.Replica()
	s := &story{
		t:       t,
		service: replica,
		tenant:  tenant,
		hub:     &harness.RawHub{ID: "none"},
		after:   replica.Metrics(),
	}
	t.Run("a replica that only serves the API", func(t *testing.T) {
		s.lint(t)
		for name, want := range map[string]bool{
			"hubcloud_httpapi_requests_total": true, "hubcloud_hubbridge_commands_total": true,
			"hubcloud_presence_hubs_online": true,
			"hubcloud_lease_groups_held":    false, "hubcloud_hubbridge_acks_total": false,
			"hubcloud_broker_streams": false,
		} {
			if _, got := s.after[name]; got != want {
				t.Errorf("%s exists: got %v, want %v", name, got, want)
			}
		}
		if got := s.after.Value(t, "hubcloud_projections_leading"); got != 0 {
			t.Errorf("hubcloud_projections_leading: got %v, want 0", got)
		}
	})
	if !strings.Contains(service.Log(), "msg=request request_id=") ||
		!strings.Contains(service.Log(), "trace_id=0af7651916cd43dd8448eb211c80319c") {
		t.Error("the text log has no line of the sampled request with its trace")
	}
	service.Stop()
	spans := c.of("GET /v1/sites")
	if len(spans) != 1 || len(c.all()) != 1 {
		t.Errorf(
			"got %d spans, %d of them of GET /v1/sites, want only the span of the sampled request",
			len(c.all()), len(spans),
		)
	}
	for _, resource := range c.resources {
		if resource["service.name"] != "buildings" ||
			resource["deployment.environment.name"] != "trial" {
			t.Errorf("resource: got %v, want service buildings in environment trial", resource)
		}
	}
}

// TestCollectorAway checks that a collector that does not answer delays neither requests nor the
// shutdown, and that the failure is logged once.
func TestCollectorAway(t *testing.T) {
	t.Parallel()
	// The collector accepts connections and does not answer.
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	harness.Must(t, err)
	t.Cleanup(func() { listener.Close() })
	service := harness.StartWith(t, []string{
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + listener.Addr().String(),
		"OTEL_BSP_MAX_QUEUE_SIZE=10", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE=5",
		"OTEL_EXPORTER_OTLP_TIMEOUT=200", "OTEL_BSP_EXPORT_TIMEOUT=400",
		"OTEL_BSP_SCHEDULE_DELAY=10",
	})
	tenant := harness.NewTenant(t, service, "Alone")
	for range 60 {
		tenant.Get("/sites")
	}
	streamstest.Eventually(t, "the failed export is logged",
		func() bool { return strings.Contains(service.Log(), "trace export failed") },
	)
	if took := service.Stop(); took > 30*time.Second {
		t.Errorf("shutdown took %s, want at most 30 s", took)
	}
	if lines := strings.Count(service.Log(), "trace export failed"); lines > 1 {
		t.Errorf("lines of the failed export: got %d, want 1", lines)
	}
}

// TestUnknownProtocol checks that an unknown OTLP protocol fails the start with the list of known
// ones.
func TestUnknownProtocol(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318")
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")
	_, stderr, code := harness.RunBinary(
		t, "serve", "--data-dir", t.TempDir(), "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0",
		"--mqtt", "127.0.0.1:0", "--nats", "127.0.0.1:0",
	)
	if code != 2 ||
		!strings.Contains(
			stderr, `OTEL_EXPORTER_OTLP_PROTOCOL: must be http/protobuf or grpc, got "http/json"`,
		) {
		t.Errorf("got exit code %d, want 2 and the allowed protocols: %s", code, stderr)
	}
}
