package httpapi

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hubcloud/domain"
	"hubcloud/httpapi/portal"
	"hubcloud/streams/shares"
	"hubcloud/streams/streamstest"
)

const streamPath = "/v1/hubs/" + string(hubOne) + "/events/stream"

// inBubble runs a test with a service on the bubble's clock.
func inBubble(t *testing.T, change func(*Config), test func(*service, *pipeListener)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, listener := startInBubble(t, change, nil)
		test(s, listener)
	})
}

// openStream is a client's view of a stream.
type openStream struct {
	t    testing.TB
	res  *http.Response
	text *bufio.Reader
	stop context.CancelFunc
}

func (s *service) stream(headers ...string) *openStream {
	s.t.Helper()
	return s.streamAt(streamPath+"?positions=true", headers...)
}

func (s *service) streamAt(path string, headers ...string) *openStream {
	s.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, "GET", s.base+path, nil)
	streamstest.Must(s.t, err)
	req.Header.Set("Authorization", s.bearer)
	for i := 0; i < len(headers); i += 2 {
		req.Header[headers[i]] = append(req.Header[headers[i]], headers[i+1])
	}
	res, err := s.client.Do(req)
	streamstest.Must(s.t, err)
	s.t.Cleanup(func() { stop(); res.Body.Close() })
	return &openStream{t: s.t, res: res, text: bufio.NewReader(res.Body), stop: stop}
}

// block reads up to and including the next empty line, or a comment line.
func (o *openStream) block() string {
	o.t.Helper()
	var block strings.Builder
	for {
		line, err := o.text.ReadString('\n')
		if err != nil {
			o.t.Fatalf("after %q: got %v, want an event", block.String(), err)
		}
		block.WriteString(line)
		if line == "\n" || block.String()[0] == ':' {
			return block.String()
		}
	}
}

// expect reads a block and compares it.
func (o *openStream) expect(want string) {
	o.t.Helper()
	if got := o.block(); got != want {
		o.t.Fatalf("block %q, want %q", got, want)
	}
}

// end reads the rest of the stream, which must end cleanly.
func (o *openStream) end() string {
	o.t.Helper()
	rest, err := io.ReadAll(o.text)
	if err != nil {
		o.t.Fatalf("end of the stream: got %v, want a clean end", err)
	}
	return string(rest)
}

// Header and position are sent at once, before any event.
func TestStreamBegin(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.emit(2, 0)
	for _, tt := range []struct {
		query   string
		headers []string
		begins  string
	}{
		{"", nil, "c2"},
		{"", []string{"Last-Event-Id", "c1"}, "c1"},
		{"", []string{"Last-Event-Id", ""}, "c2"},
		{"&after=c0", nil, "c0"},
		{"&after=c0", []string{"Last-Event-Id", "c1"}, "c1"},
		{"&after=c1", []string{"Last-Event-Id", ""}, "c1"},
		{"&after=nonsense", []string{"Last-Event-Id", "c1", "Accept", "text/html"}, "c1"},
	} {
		o := s.streamAt(streamPath+"?positions=true"+tt.query, tt.headers...)
		if o.res.StatusCode != 200 {
			t.Fatalf("%s %v: got %d, want 200", tt.query, tt.headers, o.res.StatusCode)
		}
		for name, want := range map[string]string{
			"Content-Type": "text/event-stream", "Cache-Control": "no-cache, no-transform",
			"X-Accel-Buffering": "no", "Content-Length": "",
		} {
			if got := o.res.Header.Get(name); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		if o.res.Header.Get("X-Request-Id") == "" || o.res.Header.Get("RateLimit-Remaining") == "" {
			t.Errorf("got header %v, want X-Request-Id and RateLimit-Remaining", o.res.Header)
		}
		o.expect("id: " + tt.begins + "\n\n")
		o.stop()
	}
}

// Every stream began with a block that had only an id, and each keepalive was followed by one.
// Public clients took these for messages without data. By default a stream has messages and
// keepalive comments, and nothing else; its header comes at once all the same.
func TestStreamOfMessages(t *testing.T) {
	t.Parallel()
	for _, path := range []string{streamPath, streamPath + "?positions=false", "/v1/events/stream"} {
		inBubble(t, func(c *Config) { c.Retention = 40 * time.Second }, func(s *service, _ *pipeListener) {
			began := time.Now()
			o := s.streamAt(path)
			if took := time.Since(began); o.res.StatusCode != 200 || took > 0 {
				t.Errorf("%s: got %d after %s, want 200 at once", path, o.res.StatusCode, took)
			}
			o.expect(": keepalive\n")
			s.emit(1, 0)
			o.expect(string(encodedEvent(1, 0).Frame))
			for range 3 {
				o.expect(": keepalive\n")
			}
			if took := time.Since(began); took != 4*DefaultStreamKeepalive {
				t.Errorf("%s: 4 keepalives after %s, want %s", path, took, 4*DefaultStreamKeepalive)
			}
			o.stop()
		})
	}
}

// Errors before the stream begins are ordinary answers.
func TestStreamErrors(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *Config) { c.StreamsPerKey = 1 })
	wantError(t, s.do("GET", streamPath, "", "Last-Event-ID", "old"), 410, domain.CodeCursorExpired)
	wantError(t, s.do("GET", streamPath, "", "Last-Event-ID", "x"), 400, domain.CodeInvalidRequest)
	wantError(t, s.do("GET", streamPath+"?positions=1", ""), 400, domain.CodeInvalidRequest)
	o := s.streamAt(streamPath, "Last-Event-Id", "c0", "Last-Event-Id", "c0")
	if o.res.StatusCode != 400 {
		t.Errorf("two Last-Event-ID: got %d, want 400", o.res.StatusCode)
	}
	open := s.stream()
	open.block()
	a := s.do("GET", streamPath, "")
	wantError(t, a, 429, domain.CodeRateLimited)
	if a.Header.Get("Retry-After") != "1" {
		t.Errorf("got Retry-After %q, want 1", a.Header.Get("Retry-After"))
	}
	wait := "/v1/hubs/" + string(hubOne) + "/events?wait=1"
	wantError(t, s.do("GET", wait, ""), 429, domain.CodeRateLimited)
	wantError(t, s.do("GET", strings.TrimSuffix(wait, "?wait=1"), ""), 429, domain.CodeRateLimited)
	open.stop()
	streamstest.Eventually(
		t, "the stream no longer counts for reads",
		func() bool { return s.do("GET", wait, "").StatusCode == 200 },
	)
	streamstest.Eventually(
		t, "the stream no longer counts for streams",
		func() bool { return s.stream().res.StatusCode == 200 },
	)
}

// Pages of other origins get no CORS header, so browsers do not let them read anything; their
// preflight gets an error. A stream has exactly the media type that EventSource requires, and no
// answer is 204, which would end its reconnects.
func TestBrowsers(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	preflight := []string{
		"Authorization",
		"",
		"Origin",
		"https://elsewhere.example",
		"Access-Control-Request-Method",
		"GET",
	}
	wantError(t, s.do("OPTIONS", streamPath, "", preflight...), 401, domain.CodeUnauthenticated)
	wantError(t, s.do("OPTIONS", streamPath, "", preflight[2:]...), 405, domain.CodeInvalidRequest)
	for name, headers := range map[string][]string{
		"from the beginning": {
			"Accept", "text/event-stream", "Origin", "https://elsewhere.example",
		},
		"again": {
			"Accept", "text/event-stream", "Last-Event-Id", "c0", "Cache-Control", "no-cache",
		},
	} {
		o := s.stream(headers...)
		if o.res.StatusCode != 200 || o.res.Header.Get("Content-Type") != "text/event-stream" {
			t.Errorf(
				"%s: got %d %s, want 200 text/event-stream", name, o.res.StatusCode,
				o.res.Header.Get("Content-Type"),
			)
		}
		for field := range o.res.Header {
			if strings.HasPrefix(field, "Access-Control-") {
				t.Errorf("%s: got header %s, want none of CORS", name, field)
			}
		}
		o.expect("id: c0\n\n")
	}
	s.drain()
	if a := s.do("GET", streamPath, ""); a.StatusCode != 200 || a.body != "" {
		t.Errorf(
			"while the service stops: got %d %q, want 200 and an empty stream", a.StatusCode,
			a.body,
		)
	}
}

// With a short retention the position is repeated in time, with and without a keepalive.
func TestStreamCursor(t *testing.T) {
	t.Parallel()
	const retention = 40 * time.Second
	inBubble(t, func(c *Config) { c.Retention = retention }, func(s *service, _ *pipeListener) {
		o := s.stream()
		began := time.Now()
		o.expect("id: c0\n\n")
		for _, step := range []struct {
			at   time.Duration
			want string
		}{
			{10, "id: c0\n\n"}, {20, "id: c0\n\n"}, {30, ": keepalive\n"}, {30, "id: c0\n\n"},
			{40, "id: c0\n\n"}, {50, "id: c0\n\n"},
			{60, ": keepalive\n"}, {60, "id: c0\n\n"}, {70, "id: c0\n\n"},
		} {
			o.expect(step.want)
			if at := time.Since(began); at != step.at*time.Second {
				t.Errorf("%q after %s, want %d s", step.want, at, step.at)
			}
		}
		s.emit(1, 0)
		o.expect(string(encodedEvent(1, 0).Frame))
		o.expect("id: c1\n\n")
	})
}

// A stream ends cleanly by itself between 13/15 and 15/15 of its lifetime.
func TestStreamLifetime(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(s *service, _ *pipeListener) {
		ends := map[time.Duration]bool{}
		for range 20 {
			o := s.stream()
			began := time.Now()
			o.end()
			lasted := time.Since(began)
			if lasted < 13*time.Minute || lasted > 15*time.Minute {
				t.Errorf("lasted %s, want 13 to 15 min", lasted)
			}
			ends[lasted] = true
		}
		if len(ends) < 10 {
			t.Errorf("got lifetimes %v, want at least 10 different ones", ends)
		}
	})
}

// Streams end cleanly within a second for every external reason, also if they have been quiet until
// after the last write's deadline.
func TestStreamEnds(t *testing.T) {
	t.Parallel()
	for name, cause := range map[string]func(*service){
		"the key is revoked":  func(s *service) { s.revoke() },
		"the service stops":   func(s *service) { s.drain() },
		"the log is reset":    func(s *service) { s.resetLog() },
		"the logs are closed": func(s *service) { s.closeLogs() },
		"while events are flowing": func(s *service) {
			s.emit(1000, 100)
			s.revoke()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(s *service, _ *pipeListener) {
				o := s.stream()
				o.expect("id: c0\n\n")
				time.Sleep(25 * time.Second)
				began := time.Now()
				go cause(s)
				o.end()
				if took := time.Since(began); took > time.Second {
					t.Errorf("ended after %s, want at most 1 s", took)
				}
				synctest.Wait()
				if log := s.logged.String(); strings.Contains(log, `"level":"ERROR"`) {
					t.Errorf("got log %s, want no error", log)
				}
			})
		})
	}
}

// A client that stops reading is disconnected by the deadline of a write, and does not delay
// another one.
func TestStalledReader(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(s *service, listener *pipeListener) {
		stalled, err := listener.dial()
		streamstest.Must(t, err)
		defer stalled.Close()
		request := "GET " + streamPath + " HTTP/1.1\r\nHost: h\r\nAuthorization: " + s.bearer +
			"\r\n\r\n"
		if _, err := io.WriteString(stalled, request); err != nil {
			t.Fatal(err)
		}
		// Read the header and the first block, and no more.
		if _, err := stalled.Read(make([]byte, 4096)); err != nil {
			t.Fatal(err)
		}
		o := s.stream()
		o.expect("id: c0\n\n")
		began := time.Now()
		for i := range uint64(60) {
			s.emit(1, 1000)
			for o.block() != string(encodedEvent(i+1, 1000).Frame) {
				continue // a keepalive
			}
			if took := time.Since(began); took > time.Duration(i)*time.Second {
				t.Fatalf("event %d: got it after %s, want after %d s", i, took, i)
			}
			synctest.Wait()
			s.mu.Lock()
			readers := s.readers
			s.mu.Unlock()
			if i < 5 && readers != 2 {
				t.Fatalf("got %d readers after %d s, want 2", readers, i)
			}
			if i > 10 && readers != 1 {
				t.Fatalf("got %d readers after %d s, want 1", readers, i)
			}
			time.Sleep(time.Second)
		}
	})
}

// HTTP/2 keeps a write's deadline after the write, and would reset a quiet stream.
func TestStreamOverHTTP2(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		protocols := new(http.Protocols)
		protocols.SetUnencryptedHTTP2(true)
		s, _ := startInBubble(t, nil, protocols)
		o := s.stream()
		if o.res.ProtoMajor != 2 {
			t.Fatalf("got protocol %s, want HTTP/2", o.res.Proto)
		}
		o.expect("id: c0\n\n")
		o.expect(": keepalive\n")
		o.expect("id: c0\n\n")
		s.emit(1, 0)
		o.expect(string(encodedEvent(1, 0).Frame))
		time.Sleep(25 * time.Second)
		a := s.do("GET", "/v1/hubs/"+string(hubOne)+"/events?after=c1&wait=60", "")
		if a.StatusCode != 200 {
			t.Errorf("long-poll: got %d, want 200", a.StatusCode)
		}
		o.end()
	})
}

// Regression: 2,500 streams of an organization, whose hub had 77 events a second, took the processors from
// everyone else: 57 ms became 1.9 s. Now they wait for each other beyond the time of their writes, twice as
// long while others are active, and lose nothing.
func TestStreamsWaitForEachOther(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		others string // what another organization asks for
		events bool   // whether another one has events
		atOnce int
		last   time.Duration
	}{
		"alone":             {atOnce: 4, last: 500 * time.Millisecond},
		"beside others":     {others: "/v1/hubs", atOnce: 2, last: 2 * time.Second},
		"beside the portal": {others: "/portal/sign-in", atOnce: 2, last: 2 * time.Second},
		"beside events":     {events: true, atOnce: 2, last: 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			registry := new(shares.Registry)
			inBubble(t, func(c *Config) {
				c.StreamTime, c.Shares = 4*freeStreamTime, registry
				c.Portal = portal.New(portal.Config{Invitations: welcoming{}})
			}, func(s *service, _ *pipeListener) {
				const streams = 6
				took := make(chan time.Duration, streams)
				var open []*openStream
				for range streams {
					open = append(open, s.streamAt(streamPath))
				}
				if c.others != "" {
					other, _ := s.addKey(orgTwo, 2, domain.AllScopes()...)
					s.do("GET", c.others, "", "Authorization", other)
				}
				if c.events {
					registry.Active(orgTwo, time.Now())
				}
				synctest.Wait()
				begun := time.Now()
				s.emit(1, 0)
				for _, o := range open {
					go func() {
						_, _ = o.text.ReadString('\n') // an error comes at once, which is too early
						took <- time.Since(begun)
					}()
				}
				var all []time.Duration
				for range streams {
					all = append(all, <-took)
				}
				slices.Sort(all)
				if all[c.atOnce-1] != 0 || all[c.atOnce] == 0 || all[streams-1] != c.last {
					t.Errorf("got the event after %v, want %d at once and the last after %v", all, c.atOnce, c.last)
				}
			})
			for _, use := range registry.Report() {
				if use.Resource == "stream_microseconds" && (len(use.By) != 1 || use.By[0].Spender != orgOne) {
					t.Errorf("got %+v, want the organization to have waited", use)
				}
			}
		})
	}
}
