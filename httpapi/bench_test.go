package httpapi

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
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

// pageInMemory returns a function that handles one request for a page, without a connection.
func pageInMemory(b testing.TB) (answer func()) {
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

// BenchmarkEventPage compares a page of 100 events with a bare server that writes the same bytes.
func BenchmarkEventPage(b *testing.B) {
	w := newWorld()
	bearer, _ := w.addKey(orgOne, 1, domain.AllScopes()...)
	w.emit(100, 200)
	ready := writtenPage()
	for name, handler := range map[string]http.Handler{
		"api": newAPI(b, Config{
			Keys: w, Hubs: hubAccess{w}, Events: w, Environment: domain.EnvironmentDev, Rate: 1e6,
			Burst:  1e6,
			Logger: slog.New(slog.NewJSONHandler(io.Discard, nil)),
		}),
		"bare": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", strconv.Itoa(len(ready)))
			_, _ = w.Write(ready)
		}),
	} {
		b.Run(name, func(b *testing.B) {
			address := serveBench(b, handler)
			b.ReportAllocs()
			b.SetParallelism(4)
			b.RunParallel(func(pb *testing.PB) {
				conn, err := net.Dial("tcp", address)
				if err != nil {
					b.Error(err)
					return
				}
				defer conn.Close()
				reader := bufio.NewReaderSize(conn, 64<<10)
				request := fmt.Sprintf(
					"GET /v1/hubs/%s/events?limit=100&after=c0 HTTP/1.1\r\nHost: h\r\n"+
						"Authorization: %s\r\n\r\n",
					hubOne, bearer,
				)
				for pb.Next() {
					_, _ = io.WriteString(conn, request)
					if err := skipResponse(reader); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

// skipResponse reads one response with a Content-Length.
func skipResponse(reader *bufio.Reader) error {
	length := -1
	for {
		line, err := reader.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(line) == 2 {
			break
		}
		if len(line) > 16 && string(line[:16]) == "Content-Length: " {
			if length, err = strconv.Atoi(string(line[16 : len(line)-2])); err != nil {
				return err
			}
		}
	}
	_, err := reader.Discard(length)
	return err
}

// BenchmarkIdleStream compares the memory of an idle stream with one of a bare server.
func BenchmarkIdleStream(b *testing.B) {
	const streams = 2000
	w := newWorld()
	bearer, _ := w.addKey(orgOne, 1, domain.AllScopes()...)
	for name, handler := range map[string]http.Handler{
		"api": newAPI(b, Config{
			Keys: w, Hubs: hubAccess{w}, Events: w, Environment: domain.EnvironmentDev, Rate: 1e6,
			Burst: 1e6,
		}),
		"bare": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "id: c0\n\n")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}),
	} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				address := serveBench(b, handler)
				before := inUse()
				conns := make([]net.Conn, streams)
				buf := make([]byte, 2048)
				for i := range conns {
					conn, err := net.Dial("tcp", address)
					if err != nil {
						b.Fatal(err)
					}
					conns[i] = conn
					_, _ = fmt.Fprintf(
						conn, "GET %s?positions=true HTTP/1.1\r\nHost: h\r\nAuthorization: %s\r\n\r\n", streamPath,
						bearer,
					)
					if _, err := conn.Read(buf); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(inUse()-before)/streams, "B/stream")
				for _, conn := range conns {
					conn.Close()
				}
			}
		})
	}
}

// inUse returns the memory of heap and stacks in use.
func inUse() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapInuse + stats.StackInuse)
}

// BenchmarkStreamDelivery compares the cost of an event for each of 200 readers with a bare server
// that writes the same frames.
func BenchmarkStreamDelivery(b *testing.B) {
	const readers = 200
	for _, name := range []string{"api", "bare"} {
		b.Run(name, func(b *testing.B) {
			w := newWorld()
			bearer, _ := w.addKey(orgOne, 1, domain.AllScopes()...)
			handler := bareStream(w)
			if name == "api" {
				handler = newAPI(b, Config{
					Keys:        w,
					Hubs:        hubAccess{w},
					Events:      w,
					Environment: domain.EnvironmentDev,
					Rate:        1e6,
					Burst:       1e6,
				},
				)
			}
			address := serveBench(b, handler)
			frame := len(encodedEvent(1, 300).Frame)
			received := make(chan struct{}, readers)
			for range readers {
				conn, err := net.Dial("tcp", address)
				if err != nil {
					b.Fatal(err)
				}
				defer conn.Close()
				_, _ = fmt.Fprintf(
					conn, "GET %s?positions=true HTTP/1.1\r\nHost: h\r\nAuthorization: %s\r\n\r\n", streamPath,
					bearer,
				)
				buf := make([]byte, 4096)
				if _, err := conn.Read(buf); err != nil {
					b.Fatal(err)
				}
				go func() {
					for {
						n, err := conn.Read(buf)
						if err != nil {
							return
						}
						if n >= frame {
							received <- struct{}{}
						}
					}
				}()
			}
			b.ResetTimer()
			for range b.N {
				w.emit(1, 300)
				for range readers {
					<-received
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*readers), "ns/delivery")
		})
	}
}

// bareStream is a stream without the API around it.
func bareStream(w *world) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		reader, _ := w.Follow(r.Context(), hubOne, "")
		defer reader.Close()
		rw.Header().Set("Content-Type", "text/event-stream")
		control := http.NewResponseController(rw)
		_, _ = io.WriteString(rw, "id: c0\n\n")
		_ = control.Flush()
		for {
			ready := reader.Ready()
			events, _ := reader.Next(r.Context(), streamBatch)
			for _, e := range events {
				_, _ = rw.Write(e.Frame)
				_ = control.Flush()
			}
			select {
			case <-ready:
			case <-r.Context().Done():
				return
			}
		}
	})
}

func serveBench(b *testing.B, handler http.Handler) string {
	b.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := NewServer(handler, slog.New(slog.DiscardHandler))
	served := listener
	if api, ok := handler.(API); ok {
		served = api.Listener(listener)
	}
	go func() { _ = server.Serve(served) }()
	b.Cleanup(func() { _ = server.Close() })
	return listener.Addr().String()
}
