package observe

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/streams"
	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// story is one run of the service with an example of everything that it reports.
type story struct {
	t         *testing.T
	service   *harness.Service
	collector *collected
	tenant    *harness.Tenant
	hub       *harness.RawHub
	// requests receives the requests to the hub.
	requests chan harness.Request

	before, after harness.Metrics
	// secrets must not appear in the log or in a span.
	secrets map[string]string
	// listed, commanded and created are the X-Request-Ids of a live call, a command and a
	// management call.
	listed, commanded, created string
}

// The trace that the story's command is part of.
const (
	traceID     = "4bf92f3577b34da6a3ce929d0e0e4736"
	traceparent = "00-" + traceID + "-00f067aa0ba902b7-01"
)

const commandAnswer = `{"channel":{"key":"lock","endpoint":0,"kind":"lock","unit":null,"available":true,"value":true,` +
	`"observed_at":"2026-01-02T03:04:05.000000Z","desired":false,"desired_at":"2026-01-02T03:04:06.000000Z","status":"pending"}}`

// runStory runs the service through every kind of work that it reports.
func runStory(t *testing.T) *story {
	t.Helper()
	s := &story{
		t:         t,
		collector: &collected{},
		requests:  make(chan harness.Request, 100),
		secrets:   map[string]string{},
	}
	s.service = harness.StartWith(
		t,
		[]string{
			"OTEL_EXPORTER_OTLP_ENDPOINT=" + s.collector.overHTTP(t),
			"OTEL_BSP_SCHEDULE_DELAY=100",
		},
		"--log-format",
		"json",
		"--log-level",
		"debug",
		"--live-cache",
		"1",
		"--burst",
		"60",
	)
	s.before = s.service.Metrics()
	s.tenant = harness.NewTenant(t, s.service, "Observed")
	s.secrets["the key"] = s.tenant.Key
	s.followFeeds()
	s.useHub()
	s.useAPI()
	s.overrun()
	s.withhold()
	s.exceedRateLimits()
	s.invite()
	s.hub.Disconnect()
	streamstest.Eventually(t, "the hub is offline", func() bool {
		return s.service.Metrics().
			Value(t, "hubcloud_hubbridge_presence_transitions_total", "status", "offline") >
			0
	})
	streamstest.Eventually(t, "everything is handled, projected and delivered", func() bool {
		s.after = s.service.Metrics()
		mails := func(outcome string) float64 {
			return s.after.Value(t, "hubcloud_outbox_mails_total", "outcome", outcome)
		}
		return s.after.Value(t, "hubcloud_projections_lag_events") == 0 &&
			s.after.Value(t, "hubcloud_projections_lag_seconds") == 0 &&
			s.after.Value(t, "hubcloud_hubbridge_inbox_bytes") == 0 &&
			s.after.Value(t, "hubcloud_presence_hubs_online") == 0 &&
			// the service delivers one mail that the command line queued: the one to the owner
			mails("delivered") == mails("queued")+1
	})
	return s
}

// followFeeds subscribes to the feeds of the hub logs, which are published for subscribers only,
// until the test ends.
func (s *story) followFeeds() {
	conns := s.connect()
	s.t.Cleanup(conns.Close)
	for _, nc := range conns.Shards {
		if _, err := nc.Subscribe(streams.FeedSubject("log.>"), func(*nats.Msg) {}); err != nil {
			s.t.Fatal(err)
		}
		harness.Must(s.t, nc.Flush())
	}
}

// connect connects to the service's broker.
func (s *story) connect() *streams.Conns {
	s.t.Helper()
	credentials, err := streams.ReadCredentials(s.service.Dir + "/nats-credentials.json")
	harness.Must(s.t, err)
	conns, err := streams.Connect(s.t.Context(), credentials)
	harness.Must(s.t, err)
	return conns
}

// useHub connects a hub and sends events, repeats, gaps and malformed events.
func (s *story) useHub() {
	s.hub = harness.NewRawHub(s.t, s.service)
	s.hub.BreaksProtocol() // it sends a malformed event, and answers without what may be absent
	s.secrets["the enrolment secret"] = s.hub.Secret
	s.hub.OnRequest(func(r harness.Request) harness.Response {
		s.requests <- r
		if r.Method == "channels.command" {
			return harness.Response{
				Raw: []byte(`{"id":"` + r.ID + `","result":` + commandAnswer + `}`),
			}
		}
		return harness.Response{Result: map[string]any{"devices": []any{}}}
	})
	s.hub.Enroll()
	s.hub.GoOnline()
	s.tenant.Add(s.hub.Serial)
	s.hub.EventsFrom("log-1", 1, 3)
	s.hub.WaitAck("log-1", 3)
	s.hub.EventsFrom("log-1", 1, 3)
	s.hub.WaitAck("log-1", 3)
	s.hub.Hello("log-1", 6, 7)
	s.hub.WaitAck("log-1", 5)
	s.hub.Send(
		"events",
		map[string]any{"log": "log-1", "events": []any{map[string]any{"seq": 6, "type": ""}}},
	)
	s.hub.WaitAck("log-1", 6)
}

// useAPI makes management calls, live calls, a command and its repeat, and reads a page, a
// long poll and a stream.
func (s *story) useAPI() {
	id := func(a harness.Answer) string { return a.Header.Get("X-Request-Id") }
	s.created = id(
		s.tenant.Create("/sites", map[string]string{"name": "Second"}),
	)
	hub := "/hubs/" + s.hub.ID
	s.listed = id(s.tenant.Get(hub + "/devices"))
	for range 2 {
		again := s.tenant.Command(
			hub+"/devices/1/commands", `{"key":"lock","value":false}`, "Idempotency-Key",
			"the-idempotency-key", "traceparent", traceparent,
		)
		if s.commanded == "" {
			s.commanded = id(again)
		}
	}
	s.tenant.Events(s.hub.ID, "", 100, 0)
	s.tenant.Events(s.hub.ID, s.tenant.Head(s.hub.ID), 100, 1)
	stream := s.tenant.Stream(hub+"/events/stream", "")
	s.hub.EventsFrom("log-1", 7, 7)
	s.hub.WaitAck("log-1", 7)
	stream.Next(s.t, time.Minute)
	for _, name := range []string{
		"hubcloud_httpapi_streams", "hubcloud_httpapi_requests_in_flight",
		"hubcloud_feed_readers", "hubcloud_feed_tails", "hubcloud_presence_hubs_online",
	} {
		streamstest.Eventually(s.t, name+" is 1 with an open stream of one hub", func() bool {
			return s.service.Metrics().Value(s.t, name) == 1
		})
	}
	stream.Close()
}

// overrun opens a stream whose reader does not read while more events arrive than the ring holds.
func (s *story) overrun() {
	t := s.t
	conn, err := net.Dial("tcp", s.service.HTTP)
	harness.Must(t, err)
	defer conn.Close()
	harness.Must(t, conn.(*net.TCPConn).SetReadBuffer(4096))
	fmt.Fprintf(
		conn,
		"GET /v1/hubs/%s/events/stream HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer %s\r\n\r\n",
		s.hub.ID, s.tenant.Key,
	)
	reader := bufio.NewReader(conn)
	if line, err := reader.ReadString('\n'); err != nil || !strings.Contains(line, "200") {
		t.Fatalf("stream: got %q, %v, want 200", line, err)
	}
	const events, size = 400, 10_000
	padding := strings.Repeat("x", size)
	for seq := uint64(8); seq < 8+events; seq += 20 {
		var some []any
		for n := seq; n < seq+20; n++ {
			event := harness.Numbered(n)
			event["data"] = map[string]any{"padding": padding}
			some = append(some, event)
		}
		s.hub.Send("events", map[string]any{"log": "log-1", "events": some})
		s.hub.WaitAck("log-1", seq+19)
	}
	go func() { _, _ = io.Copy(io.Discard, reader) }() // ends with the connection
	streamstest.Eventually(t, "the reader goes back to the log", func() bool {
		return s.service.Metrics().Value(t, "hubcloud_feed_ring_overruns_total") > 0
	})
}

// withhold makes the journal reject commits for a while, so that acks are withheld.
func (s *story) withhold() {
	t := s.t
	conns := s.connect()
	defer conns.Close()
	js, err := jetstream.New(conns.Cloud)
	harness.Must(t, err)
	stream, err := js.Stream(t.Context(), streams.JournalStream(0))
	harness.Must(t, err)
	config := stream.CachedInfo().Config
	full := config
	full.MaxMsgs, full.Discard = 1, jetstream.DiscardNew
	if _, err := js.UpdateStream(t.Context(), full); err != nil {
		t.Fatal(err)
	}
	s.hub.EventsFrom("log-1", 408, 409)
	streamstest.Eventually(t, "an ack is withheld", func() bool {
		return s.service.Metrics().Value(t, "hubcloud_hubbridge_acks_withheld_total") > 0
	})
	if _, err := js.UpdateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	streamstest.Eventually(t, "the journal stores events again", func() bool {
		s.hub.EventsFrom("log-1", 408, 409)
		select {
		case ack := <-s.hub.Acks:
			return ack.Through >= 409
		case <-time.After(time.Second):
			return false
		}
	})
}

// exceedRateLimits exceeds a key's rate limit and that of unknown keys.
func (s *story) exceedRateLimits() {
	_, key := s.service.Key(s.tenant.Org)
	s.secrets["another key"] = key
	limited := func(key string) {
		// A busy machine answers fewer a second one after the other than the limit allows.
		streamstest.Eventually(s.t, "a request is answered with 429", func() bool {
			var rejected atomic.Bool
			var requests sync.WaitGroup
			for range 40 {
				requests.Go(func() {
					request, err := http.NewRequest(http.MethodGet, s.service.Base()+"/sites?limit=1", nil)
					if err != nil {
						s.t.Error(err)
						return
					}
					request.Header.Set("Authorization", "Bearer "+key)
					answer, err := http.DefaultClient.Do(request)
					if err != nil {
						s.t.Error(err)
						return
					}
					answer.Body.Close()
					if answer.StatusCode == http.StatusTooManyRequests {
						rejected.Store(true)
					}
				})
			}
			requests.Wait()
			return rejected.Load()
		})
	}
	limited(key)
	limited("hc_dev_" + strings.Repeat("A", 55))
}

// post sends a form to the portal and returns the response, whose body is closed. It repeats the
// request while the address is rate-limited.
func (s *story) post(path string, form url.Values) (answer *http.Response) {
	s.t.Helper()
	client := &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}
	streamstest.Eventually(s.t, "the form at "+path+" is accepted", func() bool {
		var err error
		if answer, err = client.PostForm(s.service.Public()+path, form); err != nil {
			s.t.Fatal(err)
		}
		answer.Body.Close()
		return answer.StatusCode != http.StatusTooManyRequests
	})
	return answer
}

// invite sends an invitation, opens and uses its link, and signs a person in.
func (s *story) invite() {
	s.tenant.Create("/invitations", map[string]string{"email": "new@example.com"})
	link := s.service.Mails("new@example.com", 1)[0].Link()
	s.secrets["the invitation's token"] = link[strings.LastIndex(link, "/")+1:]
	// This address has just used up its rate limit.
	streamstest.Eventually(s.t, "the link is opened", func() bool {
		return harness.Open(s.t, http.MethodGet, link).Status == http.StatusOK
	})
	s.post("/portal/sign-in", url.Values{"email": {"new@example.com"}})
	mails := s.service.Mails("new@example.com", 2)
	text := mails[len(mails)-1].Text
	_, token, ok := strings.Cut(text, "/portal/sign-in/")
	if !ok {
		s.t.Fatalf("sign-in mail: got %s, want a link", text)
	}
	token = strings.FieldsFunc(
		token, func(r rune) bool { return strings.ContainsRune(" \r\n\"<>", r) },
	)[0]
	s.secrets["the token to sign in"] = token
	answer := s.post("/portal/sign-in/"+token, nil)
	for _, cookie := range answer.Cookies() {
		s.secrets["the cookie "+cookie.Name] = cookie.Value
	}
}
