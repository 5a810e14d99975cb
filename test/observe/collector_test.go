package observe

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"hubcloud/streams/streamstest"
)

// collected is an OTLP receiver that keeps the spans.
type collected struct {
	collector.UnimplementedTraceServiceServer

	mu        sync.Mutex
	spans     []*trace.Span
	resources []map[string]string
}

// Export implements the OTLP service.
func (c *collected) Export(
	_ context.Context, request *collector.ExportTraceServiceRequest,
) (*collector.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range request.GetResourceSpans() {
		c.resources = append(c.resources, attributes(resource.GetResource().GetAttributes()))
		for _, scope := range resource.GetScopeSpans() {
			c.spans = append(c.spans, scope.GetSpans()...)
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

// overHTTP receives OTLP as http/protobuf until the test ends, and returns the URL.
func (c *collected) overHTTP(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var request collector.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(body, &request)
		}
		if err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/traces" ||
			r.Header.Get("Content-Type") != "application/x-protobuf" ||
			!strings.HasPrefix(r.Header.Get("User-Agent"), "hubcloud/") {
			t.Errorf(
				"export: got %s %s with content type %s of %s: %v, want POST /v1/traces of protobuf "+
					"of hubcloud/…",
				r.Method, r.URL.Path, r.Header.Get("Content-Type"), r.Header.Get("User-Agent"), err,
			)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		_, _ = c.Export(r.Context(), &request) // never fails
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// overGRPC receives OTLP over gRPC until the test ends, and returns the URL.
func (c *collected) overGRPC(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	streamstest.Must(t, err)
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, c)
	go func() { _ = server.Serve(listener) }() // ends with Stop
	t.Cleanup(server.Stop)
	return "http://" + listener.Addr().String()
}

// of returns the spans with a name.
func (c *collected) of(name string) (spans []*trace.Span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, span := range c.spans {
		if span.GetName() == name {
			spans = append(spans, span)
		}
	}
	return spans
}

// all returns all spans.
func (c *collected) all() []*trace.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]*trace.Span(nil), c.spans...)
}

// attributes returns attributes as a map. A value that is no string has the form of protobuf's
// text.
func attributes(pairs []*common.KeyValue) map[string]string {
	all := map[string]string{}
	for _, pair := range pairs {
		switch value := pair.GetValue().GetValue().(type) {
		case *common.AnyValue_StringValue:
			all[pair.GetKey()] = value.StringValue
		default:
			all[pair.GetKey()] = pair.GetValue().String()
		}
	}
	return all
}

// span returns the first span with a name and an attribute.
func (s *story) span(t *testing.T, name, key, value string) *trace.Span {
	t.Helper()
	for _, span := range s.collector.of(name) {
		if attributes(span.GetAttributes())[key] == value {
			return span
		}
	}
	t.Fatalf("span %q with %s=%s: not found among %s", name, key, value, s.names())
	return nil
}

// child returns the first span with a name and a parent.
func (s *story) child(t *testing.T, parent []byte, name string) *trace.Span {
	t.Helper()
	for _, span := range s.collector.of(name) {
		if string(span.GetParentSpanId()) == string(parent) {
			return span
		}
	}
	t.Fatalf("span %q with parent %x: not found among %s", name, parent, s.names())
	return nil
}
