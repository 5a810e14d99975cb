package httpapi

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/go-chi/chi/v5"

	"hubcloud/domain"
)

// A request for a page in memory, the busiest route, allocates little beyond what net/http does.
func TestAllocations(t *testing.T) {
	answer := pageInMemory(t)
	answer()
	// 22 or so, and a few more under the race detector
	if got := testing.AllocsPerRun(1000, answer); got > 24 {
		t.Errorf("got %v allocations a request, want at most 24", got)
	}
}

// BenchmarkChain compares a page of events in memory with a bare router that writes the same bytes.
// The difference is the cost of request id, key, rate limit, scope, log line and metrics. There is
// no connection.
func BenchmarkChain(b *testing.B) {
	chain := pageInMemory(b)
	body := writtenPage()
	bare := chi.NewRouter()
	bare.Get("/v1/hubs/{hub_id}/events", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body)
	})
	req := httptest.NewRequest("GET", "/v1/hubs/"+string(hubOne)+"/events?limit=100", nil)
	header := http.Header{}
	for _, side := range []struct {
		name   string
		answer func()
	}{
		{"chain", chain},
		{"bare", func() {
			clear(header)
			bare.ServeHTTP(discard{header}, req)
		}},
	} {
		b.Run(side.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				side.answer()
			}
		})
	}
}

// writtenPage returns the body of a page of 100 events.
func writtenPage() []byte {
	w := newWorld()
	w.emit(100, 200)
	page := &request{api: &api{}, w: httptest.NewRecorder()}
	events, _ := w.page("", 100, responseChunk)
	page.writeWholePage(events)
	return page.w.(*httptest.ResponseRecorder).Body.Bytes()
}

// pageInMemory returns a function that handles one request for a page, without a connection. fields
// has names and values.
func pageInMemory(b testing.TB, fields ...string) (answer func()) {
	w := newWorld()
	bearer, _ := w.addKey(orgOne, 1, domain.AllScopes()...)
	w.emit(100, 300)
	handler := newAPI(b, Config{
		Keys: w, Hubs: hubAccess{w}, Events: w, Environment: domain.EnvironmentDev, Rate: 1e6,
		Burst:  1e6,
		Logger: slog.New(slog.NewJSONHandler(io.Discard, nil)),
	})
	req := httptest.NewRequest("GET", "/v1/hubs/"+string(hubOne)+"/events?limit=100", nil)
	req.Header.Set("Authorization", bearer)
	for i := 0; i+1 < len(fields); i += 2 {
		req.Header.Set(fields[i], fields[i+1])
	}
	req.Body = http.NoBody
	header := http.Header{}
	return func() {
		clear(header)
		handler.ServeHTTP(discard{header}, req)
	}
}

// discard is an http.ResponseWriter that discards the answer.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(p []byte) (int, error) { return len(p), nil }
func (d discard) WriteHeader(int)             {}
