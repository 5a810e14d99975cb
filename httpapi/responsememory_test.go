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
	"hubcloud/streams/streamstest"
)

const eventsPath = "/v1/hubs/" + string(hubOne) + "/events"

// pageRequest is a request for a page, as bytes.
func (s *service) pageRequest(query string) string {
	return "GET " + eventsPath + query + " HTTP/1.1\r\nHost: h\r\nAuthorization: " + s.bearer +
		"\r\n\r\n"
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
			if used := s.api.api.memory.used; used != 0 {
				t.Errorf("got %d reserved bytes, want 0", used)
			}
		})
	}
}

// Pages used to be assembled in memory, so that 150 clients that asked for pages of 500 large
// events and read nothing took 1.4 GB. Now each takes no more than the part being written, and all
// clients of a key together no more than the limit of a key. Other keys are not affected.
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
	for range clients {
		conn, _ := s.raw(t, s.pageRequest("?limit=500"))
		conns = append(conns, conn)
	}
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
	wantError(t, s.do("GET", eventsPath+"?limit=500", ""), 429, domain.CodeRateLimited)
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
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		go func() { _, _ = io.WriteString(conn, s.pageRequest("?limit=500")) }()
		began := time.Now()
		read, err := io.Copy(io.Discard, io.LimitReader(conn, 200<<10))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(writeTimeout + time.Second)
		synctest.Wait()
		if s.api.api.memory.used != 0 {
			t.Errorf("got %d reserved bytes, want 0", s.api.api.memory.used)
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
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		go func() { _, _ = io.WriteString(conn, s.pageRequest("?limit=500")) }()
		slow := io.TeeReader(conn, slowly{})
		res, err := http.ReadResponse(bufio.NewReaderSize(slow, 16<<10), nil)
		if err != nil {
			t.Fatal(err)
		}
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
		if used := s.api.api.memory.used; used != 0 ||
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

// One key, and one organization, leave memory for others.
func TestResponseMemoryIsShared(t *testing.T) {
	t.Parallel()
	a := newResponseMemory(100, 400, newMetrics(nil).responseBytes)
	wantAcquire := func(o memoryOwner, n int64, code domain.Code) {
		t.Helper()
		if err := a.acquire(o, n); (err == nil) != (code == "") ||
			err != nil && domain.CodeOf(err) != code {
			t.Errorf("%v: got %v, want code %q", o, err, code)
		}
	}
	one, two, three := memoryOwner{"1", "org"}, memoryOwner{"2", "org"}, memoryOwner{"3", "org"}
	if part := a.chunkSize(one); part != responseChunk {
		t.Errorf("got part %d, want %d", part, responseChunk)
	}
	wantAcquire(one, 90, "")
	wantAcquire(one, 20, domain.CodeRateLimited)
	if part := a.chunkSize(one); part != responseChunkTight {
		t.Errorf("got part %d, want %d", part, responseChunkTight)
	}
	wantAcquire(one, 10, "")
	wantAcquire(two, 100, "")
	wantAcquire(three, 1, domain.CodeRateLimited)
	four, keyless := memoryOwner{"4", "other"}, memoryOwner{"address 192.0.2.1/32", addresses}
	wantAcquire(four, 100, "")
	wantAcquire(keyless, 51, domain.CodeServiceUnavailable)
	wantAcquire(keyless, 50, "")
	wantAcquire(memoryOwner{"address 192.0.2.2/32", addresses}, 1, domain.CodeServiceUnavailable)
	a.adjust(one, -100)
	wantAcquire(three, 1, "")
	a.adjust(two, -100)
	a.adjust(four, -100)
	a.adjust(keyless, -50)
	a.adjust(three, -1)
	if a.used != 0 || len(a.usedFor) != 0 {
		t.Errorf("got %d used, %v, want none", a.used, a.usedFor)
	}
}

// Two organizations that did not read used to take all response memory, so that all others got
// errors. Now each gets half of what the others leave, so there is always memory for one more
// organization, and clients without a key cannot take it all.
func TestResponseMemoryOfManyOrganizations(t *testing.T) {
	t.Parallel()
	for _, attackers := range []int{1, 2, 3, 10} {
		const all = 32 << 20
		a := newResponseMemory(8<<20, all, newMetrics(nil).responseBytes)
		for i := range attackers {
			for key := range 8 {
				o := memoryOwner{
					fmt.Sprintf("key %d of %d", key, i),
					fmt.Sprintf("organization %d", i),
				}
				// as much as it gets
				for a.acquire(o, responseChunk) == nil || a.acquire(o, uncountedBytes) == nil {
				}
			}
		}
		for i := range 100 {
			o := memoryOwner{fmt.Sprintf("address %d", i), addresses}
			for a.acquire(o, uncountedBytes) == nil {
			}
		}
		victim := memoryOwner{"key of the victim", "victim"}
		size := int64(a.chunkSize(victim))
		if err := a.acquire(victim, size); err != nil {
			t.Errorf(
				"%d organizations do not read: got %v for a page of %d bytes of another, want nil",
				attackers, err, size,
			)
		}
		if attackers <= 3 {
			if err := a.acquire(victim, 256<<10); err != nil {
				t.Errorf(
					"%d organizations do not read: got %v for more pages of another, want nil",
					attackers, err,
				)
			}
		}
		if a.used > 2*all {
			t.Errorf("got %d bytes in answers, want at most twice %d", a.used, all)
		}
	}
}
