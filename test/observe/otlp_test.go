package observe

import (
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// TestGRPC exports spans over gRPC, with the sampling and the service name of the environment, and
// with a text log.
func TestGRPC(t *testing.T) {
	t.Parallel()
	c := &collected{}
	service := harness.StartWith(t, []string{
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=" + c.overGRPC(
			t,
		), "OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_SERVICE_NAME=buildings",
		"OTEL_RESOURCE_ATTRIBUTES=deployment.environment.name=trial",
		"OTEL_TRACES_SAMPLER=parentbased_always_off",
	})
	tenant := harness.NewTenant(t, service, "Traced")
	const sampled = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	const passed = "00-0af7651916cd43dd8448eb211c80319d-b7ad6b7169203331-00"
	for _, parent := range []string{sampled, passed, "nonsense"} {
		tenant.Must(http.MethodGet, "/sites", nil, http.StatusOK, "traceparent", parent)
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
		for name, there := range map[string]bool{
			"hubcloud_httpapi_requests_total": true, "hubcloud_hubbridge_commands_total": true,
			"hubcloud_presence_hubs_online": true,
			"hubcloud_lease_shards_held":    false, "hubcloud_hubbridge_acks_total": false,
			"hubcloud_broker_streams": false,
		} {
			if _, ok := s.after[name]; ok != there {
				t.Errorf("%s: got %v", name, ok)
			}
		}
		if got := s.after.Value(t, "hubcloud_projections_leading"); got != 0 {
			t.Errorf("it projects: %v", got)
		}
	})
	if !strings.Contains(service.Log(), "msg=request request_id=") ||
		!strings.Contains(service.Log(), "trace_id=0af7651916cd43dd8448eb211c80319c") {
		t.Error("the log as text has no line of the request")
	}
	service.Stop()
	spans := c.of("GET /v1/sites")
	if len(spans) != 1 || len(c.all()) != 1 {
		t.Errorf(
			"%d spans came, %d of them of the one request that was to be sampled", len(c.all()),
			len(spans),
		)
	}
	for _, resource := range c.resources {
		if resource["service.name"] != "buildings" ||
			resource["deployment.environment.name"] != "trial" {
			t.Errorf("a resource is %v", resource)
		}
	}
}

// TestCollectorAway checks that a silent collector delays nothing and is logged once.
func TestCollectorAway(t *testing.T) {
	t.Parallel()
	// The collector accepts connections and does not answer.
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	service := harness.StartWith(t, []string{
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + listener.Addr().
			String(),
		"OTEL_BSP_MAX_QUEUE_SIZE=10", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE=5",
		"OTEL_EXPORTER_OTLP_TIMEOUT=200", "OTEL_BSP_EXPORT_TIMEOUT=400",
		"OTEL_BSP_SCHEDULE_DELAY=10",
	})
	tenant := harness.NewTenant(t, service, "Alone")
	for range 60 {
		tenant.Must(http.MethodGet, "/sites", nil, http.StatusOK)
	}
	streamstest.Eventually(t, "the log tells of it",
		func() bool { return strings.Contains(service.Log(), "trace export failed") },
	)
	if took := service.Stop(); took > 30*time.Second {
		t.Errorf("shutdown took %s", took)
	}
	if lines := strings.Count(service.Log(), "trace export failed"); lines > 1 {
		t.Errorf("got %d lines, want 1", lines)
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
		t.Errorf("exit code %d: %s", code, stderr)
	}
}
