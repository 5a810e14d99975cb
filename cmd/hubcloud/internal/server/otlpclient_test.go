package server

import (
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"hubcloud/streams/streamstest"
)

// A collector that is busy gets the spans again, one that refuses them does not, by either protocol
// and with an authority of its own.
func TestOTLPAnswers(t *testing.T) {
	for name, test := range map[string]struct {
		protocol, path string
		answers        []int // a status of HTTP, or of gRPC
		wantErr        string
	}{
		"http":          {"http/protobuf", "/v1/traces", []int{200}, ""},
		"http, busy":    {"http/protobuf", "/v1/traces", []int{503, 200}, ""},
		"http, refused": {"http/protobuf", "/v1/traces", []int{400}, "400 Bad Request"},
		"grpc":          {"grpc", grpcMethod, []int{0}, ""},
		"grpc, busy":    {"grpc", grpcMethod, []int{14, 0}, ""},
		"grpc, refused": {"grpc", grpcMethod, []int{3}, `gRPC status "3"`},
	} {
		t.Run(name, func(t *testing.T) {
			var got []*tracepb.TracesData
			collector := httptest.NewUnstartedServer(http.HandlerFunc(
				func(w http.ResponseWriter, r *http.Request) {
					body, err := io.ReadAll(r.Body)
					if r.Header.Get("Te") == "trailers" && len(body) > 5 {
						body = body[5:]
					}
					data := &tracepb.TracesData{}
					if err != nil || proto.Unmarshal(body, data) != nil || r.URL.Path != test.path ||
						r.Header.Get("Key") != "a b" {
						t.Errorf("got %s with header %v", r.URL.Path, r.Header)
					}
					got = append(got, data)
					status := test.answers[min(len(got), len(test.answers))-1]
					if status >= 100 {
						w.WriteHeader(status)
						return
					}
					w.Header().Set("Content-Type", "application/grpc")
					w.Header().Set(http.TrailerPrefix+"Grpc-Status", strconv.Itoa(status))
				},
			))
			collector.EnableHTTP2 = true
			collector.StartTLS()
			defer collector.Close()
			authority := filepath.Join(t.TempDir(), "ca.pem")
			block := &pem.Block{Type: "CERTIFICATE", Bytes: collector.Certificate().Raw}
			streamstest.Must(t, os.WriteFile(authority, pem.EncodeToMemory(block), 0o600))
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
			t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", test.protocol)
			t.Setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", authority)
			t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "key=a%20b")
			client, err := newOTLPClient("hubcloud/test")
			streamstest.Must(t, err)
			err = client.UploadTraces(t.Context(), []*tracepb.ResourceSpans{{SchemaUrl: "a"}})
			if (err == nil) != (test.wantErr == "") ||
				err != nil && !strings.Contains(err.Error(), test.wantErr) {
				t.Errorf("UploadTraces: %v, want %q", err, test.wantErr)
			}
			if len(got) != len(test.answers) || got[0].GetResourceSpans()[0].GetSchemaUrl() != "a" {
				t.Errorf("the collector got %v, want the spans %d times", got, len(test.answers))
			}
			if err := client.Stop(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
