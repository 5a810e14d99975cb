package httpapi

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/shares"
	"hubcloud/streams/streamstest"
)

const eventsPath = "/v1/hubs/" + string(hubOne) + "/events"

// pageRequest is a request for a page, as bytes.
func (s *service) pageRequest(query string) string {
	return "GET " + eventsPath + query + " HTTP/1.1\r\nHost: h\r\nAuthorization: " + s.bearer +
		"\r\n\r\n"
}

// reserved returns how many bytes of responses the keys of the first organization hold.
func (s *service) reserved() int64 {
	_, used, _ := s.api.api.memory.Held(shares.Spender{Org: orgOne})
	return used
}

// A page that is written in parts has the same events, cursor and has_more as one written at once,
// also when memory is short and the parts are small.
func TestPageInParts(t *testing.T) {
	t.Parallel()
	for name, memory := range map[string]int64{
		"with room": 0, "with little room": 2 * responseChunk,
		"with hardly any": responseChunk + responseChunkTight,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(
				t, func(c *Config) { c.ResponseBytes, c.ResponseBytesPerKey = memory*2, memory },
			)
			const events = 250
			for i := range events {
				s.emit(1, []int{0, 300, 16 << 10, 5000, 9000, 100}[i%6])
			}
			for _, limit := range []int{1, 7, 100, 249, 250, 500} {
				after, got := "", 0
				for more := true; more; {
					a := s.do(
						"GET", fmt.Sprintf("%s?limit=%d&after=%s", eventsPath, limit, after), "",
					)
					if after == "" {
						a = s.do("GET", fmt.Sprintf("%s?limit=%d", eventsPath, limit), "")
					}
					var page struct {
						Data       []json.RawMessage `json:"data"`
						NextCursor string            `json:"next_cursor"`
						HasMore    bool              `json:"has_more"`
					}
					if err := json.Unmarshal([]byte(a.body), &page); err != nil ||
						a.StatusCode != 200 {
						t.Fatalf(
							"limit %d after %q: got %d %.200s, %v, want a page", limit, after,
							a.StatusCode, a.body, err,
						)
					}
					for _, event := range page.Data {
						if got++; string(event) != string(s.log[got-1].Envelope) {
							t.Fatalf(
								"limit %d: got event %d %.100s, want the log's", limit, got, event,
							)
						}
					}
					if want := fmt.Sprintf("c%d", got); page.NextCursor != want ||
						page.HasMore != (got < events) ||
						page.HasMore && len(page.Data) != limit {
						t.Fatalf(
							"limit %d: %d events, next %s, want %s, more %v", limit, len(page.Data),
							page.NextCursor, want, page.HasMore,
						)
					}
					after, more = page.NextCursor, page.HasMore
				}
			}
			if used := s.reserved(); used != 0 {
				t.Errorf("got %d reserved bytes, want 0", used)
			}
		})
	}
}

// 150 clients that ask for pages of 500 large events and read nothing would take 1.4 GB if pages
// were assembled in memory. Each takes no more than the part being written, and all clients of a
// key together no more than the limit of a key. Other keys are not affected.
func TestPagesThatNobodyReads(t *testing.T) {
	s := start(t, nil) // not beside others: the memory is the process's
	const clients, bound = 1000, 60 << 20
	s.emit(500, 16<<10)
	other, _ := s.addKey(orgTwo, 2, domain.AllScopes()...)
	before := memoryInUse()
	var conns []net.Conn
	defer func() {
		for _, conn := range conns {
			conn.Close()
		}
	}()
	ask := func(clients int) {
		for range clients {
			conn, _ := s.raw(t, s.pageRequest("?limit=500"))
			conns = append(conns, conn)
		}
	}
	ask(clients)
	answering := func() (all int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.parts
	}
	streamstest.Eventually(
		t, "all clients are being answered", func() bool { return answering() >= clients },
	)
	most := uint64(0)
	for quiet, last := 0, -1; quiet < 20; quiet++ {
		if now := answering(); now != last {
			last, quiet = now, 0
		}
		most = max(most, memoryInUse())
		if most > before+bound {
			t.Fatalf(
				"%d clients that do not read: got %d MB, want at most %d MB", clients,
				(most-before)>>20, bound>>20,
			)
		}
		began := time.Now()
		s.do("GET", "/v1/sites", "", "Authorization", other)
		if a := s.do("GET", eventsPath, "", "Authorization", other); a.StatusCode != 404 ||
			time.Since(began) > time.Minute {
			t.Fatalf(
				"another organization: got %d after %s, want 404 within a minute", a.StatusCode,
				time.Since(began),
			)
		}
		time.Sleep(time.Millisecond) // 20 quiet samples span some time
	}
	t.Logf("%d clients that do not read take %d MB", clients, (most-before)>>20)
	// On a slow machine the first clients have been disconnected meanwhile.
	streamstest.Eventually(t, "a client more gets 429", func() bool {
		a := s.do("GET", eventsPath+"?limit=500", "")
		if a.StatusCode == http.StatusOK {
			ask(clients / 10)
			return false
		}
		wantError(t, a, 429, domain.CodeRateLimited)
		return true
	})
}

func memoryInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

// A client that stops reading a page is disconnected by the deadline of a write, and its memory is
// released.
func TestStalledPage(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(s *service, listener *pipeListener) {
		s.emit(500, 16<<10)
		conn, err := listener.dial()
		streamstest.Must(t, err)
		defer conn.Close()
		go func() { _, _ = io.WriteString(conn, s.pageRequest("?limit=500")) }()
		began := time.Now()
		read, err := io.Copy(io.Discard, io.LimitReader(conn, 200<<10))
		streamstest.Must(t, err)
		time.Sleep(writeTimeout + time.Second)
		synctest.Wait()
		if used := s.reserved(); used != 0 {
			t.Errorf("got %d reserved bytes, want 0", used)
		}
		synctest.Wait()
		rest, _ := io.Copy(io.Discard, conn)
		if read+rest > 1<<20 || time.Since(began) > 2*writeTimeout {
			t.Errorf(
				"got %d bytes, then %d, want at most 1 MB and no more after the stall", read, rest,
			)
		}
	})
}

// A page that is read slowly ends early with has_more, and the client continues from there.
func TestSlowPage(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(s *service, listener *pipeListener) {
		s.emit(500, 16<<10)
		conn, err := listener.dial()
		streamstest.Must(t, err)
		defer conn.Close()
		go func() { _, _ = io.WriteString(conn, s.pageRequest("?limit=500")) }()
		slow := io.TeeReader(conn, slowly{})
		res, err := http.ReadResponse(bufio.NewReaderSize(slow, 16<<10), nil)
		streamstest.Must(t, err)
		var page struct {
			Data       []json.RawMessage `json:"data"`
			NextCursor string            `json:"next_cursor"`
			HasMore    bool              `json:"has_more"`
		}
		body, err := io.ReadAll(res.Body)
		if err == nil {
			err = json.Unmarshal(body, &page)
		}
		if err != nil || len(page.Data) < 5 || len(page.Data) > 400 || !page.HasMore ||
			page.NextCursor != fmt.Sprintf("c%d", len(page.Data)) {
			t.Errorf(
				"got %d events, next %s, more %v, %v, want 5 to 400 and a cursor", len(page.Data),
				page.NextCursor, page.HasMore, err,
			)
		}
		synctest.Wait()
		if used := s.reserved(); used != 0 ||
			strings.Contains(s.logged.String(), `"level":"ERROR"`) {
			t.Errorf("got %d reserved bytes, log %s, want 0 and no error", used, s.logged)
		}
	})
}

// slowly delays each read.
type slowly struct{}

func (slowly) Write(p []byte) (int, error) {
	time.Sleep(time.Second)
	return len(p), nil
}
