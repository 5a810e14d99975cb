package virtualhub_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"hubcloud/domain"
	"hubcloud/hubbridge/identity"
	"hubcloud/hubbridge/kit/hub"
	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/hubbridge/mqtttest"
	"hubcloud/hubbridge/protocol"
	"hubcloud/streams"
	"hubcloud/streams/installationtest"
	"hubcloud/streams/streamstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, streamstest.Leaks()...) }

const (
	secret  = "a-secret-of-the-hubs-in-these-tests-0123456"
	timeout = time.Minute
)

// cloud is the cloud's side of the hub protocol: the real broker, certificates and enrolment, and
// an ingest in memory that is written from the description of the protocol. Tests can make it
// misbehave.
type cloud struct {
	*mqtttest.Installation
	http *httptest.Server

	enrolments atomic.Int32
	reject     atomic.Int32 // HTTP status that rejects enrolments; 0 accepts them

	mu    sync.Mutex
	hubs  map[domain.HubID]*remote
	calls map[string]chan protocol.Response
	token int
}

// remote is the cloud's state of one hub.
type remote struct {
	known   bool
	log     string
	through uint64
	hellos  []protocol.Hello
	stored  []protocol.Event
	skipped [][2]uint64
	logs    []string
	silent  bool     // no acks are sent
	faults  []string // violations of the protocol by the hub

	// malformed means that the test makes the hub send malformed events, which are no violation.
	malformed bool
}

func startCloud(t testing.TB) *cloud {
	t.Helper()
	c := &cloud{
		Installation: mqtttest.Start(t, 1, installationtest.Config{}),
		hubs:         map[domain.HubID]*remote{},
		calls:        map[string]chan protocol.Response{},
	}
	enrolment, err := identity.NewEnrolment(identity.EnrolmentConfig{
		Authority: c.Authority, Directory: c.Directory,
		Broker: func() string { return "mqtts://" + c.MQTTAddr }, Logger: streamstest.Logger(),
	})
	must(t, err)
	c.http = httptest.NewServer(c.enrol(enrolment))
	t.Cleanup(c.http.Close)
	_, err = c.Conns.Shards[0].Subscribe("hub.>", c.receive)
	must(t, err)
	must(t, c.Conns.Shards[0].Flush())
	return c
}

func (c *cloud) enrol(enrolment *identity.Enrolment) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c.enrolments.Add(1)
		body, _ := io.ReadAll(r.Body)
		var req protocol.CertificateRequest
		if json.Unmarshal(body, &req) != nil || r.Method != http.MethodPost || r.URL.Path != "/link/v1/certificates" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		if status := c.reject.Load(); status != 0 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(int(status))
			return
		}
		certificate, err := enrolment.Issue(r.Context(), req)
		if err != nil {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(certificate)
	}
}

// register adds a hub to the inventory.
func (c *cloud) register(t testing.TB, id string) virtualhub.Credentials {
	t.Helper()
	hash := sha256.Sum256([]byte(secret))
	must(t, c.Directory.RegisterHub(
		t.Context(), installationtest.Operator, domain.HubID(id), hash[:],
	))
	return virtualhub.Credentials{Serial: strings.ToUpper(id), Secret: secret}
}

// receive handles a message of a hub.
func (c *cloud) receive(m *nats.Msg) {
	levels := strings.SplitN(m.Subject, ".", 4)
	id := domain.HubID(levels[1])
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.remote(id)
	switch levels[2] {
	case "hello":
		r.hello(m.Data)
	case "events":
		r.events(m.Data)
	case "response":
		var response protocol.Response
		if err := json.Unmarshal(m.Data, &response); err != nil || (response.Result == nil) == (response.Error == nil) {
			r.faults = append(r.faults, fmt.Sprintf("response %s", m.Data))
			return
		}
		if ch, ok := c.calls[levels[3]]; ok {
			ch <- response
		}
		return
	default:
		return
	}
	if !r.silent {
		ack, _ := json.Marshal(protocol.Ack{Log: r.log, Through: r.through})
		_ = c.Conns.Shard(id).Publish(streams.AckSubject(id), ack)
	}
}

func (c *cloud) remote(id domain.HubID) *remote {
	r, ok := c.hubs[id]
	if !ok {
		r = &remote{}
		c.hubs[id] = r
	}
	return r
}

func (r *remote) hello(data []byte) {
	var h protocol.Hello
	if err := json.Unmarshal(data, &h); err != nil || h.Protocol != 1 || h.ClockTrusted == nil || h.Firmware == nil ||
		h.Network == nil || h.Oldest > h.Newest+1 {
		r.faults = append(r.faults, fmt.Sprintf("hello %s", data))
		return
	}
	r.hellos = append(r.hellos, h)
	switch {
	case !r.known || h.Log != r.log:
		r.known, r.log, r.through = true, h.Log, h.Oldest-1
		r.logs = append(r.logs, h.Log)
	case h.Oldest > r.through+1:
		r.skipped = append(r.skipped, [2]uint64{r.through + 1, h.Oldest - 1})
		r.through = h.Oldest - 1
	}
}

func (r *remote) events(data []byte) {
	var m protocol.Events
	if err := json.Unmarshal(data, &m); err != nil || m.Log != r.log || len(m.Events) == 0 || len(m.Events) > 500 ||
		len(data) > 256<<10 {
		if r.malformed {
			return
		}
		r.faults = append(
			r.faults, fmt.Sprintf("events of %d bytes, log %q: %v", len(data), m.Log, err),
		)
		return
	}
	for i, e := range m.Events {
		if e.Seq != m.Events[0].Seq+uint64(i) {
			r.faults = append(r.faults, "numbers do not rise by one")
			return
		}
	}
	if m.Events[0].Seq > r.through+1 {
		return
	}
	for _, e := range m.Events {
		if e.Seq > r.through {
			r.stored = append(r.stored, e)
			r.through = e.Seq
		}
	}
}

// with calls do for the cloud's state of a hub, under the lock.
func (c *cloud) with(h *virtualhub.Hub, do func(*remote)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	do(c.remote(domain.HubID(h.ID())))
}

// of returns the stored events of the given types; all if types is empty.
func (c *cloud) of(h *virtualhub.Hub, types ...string) (found []protocol.Event) {
	c.with(h, func(r *remote) {
		for _, e := range r.stored {
			for _, t := range types {
				if e.Type == t {
					found = append(found, e)
				}
			}
			if len(types) == 0 {
				found = append(found, e)
			}
		}
	})
	return found
}

// hub starts a hub, waits until it is connected, and stops it when the test ends. change may be
// nil.
func (c *cloud) hub(t testing.TB, id string, change func(*virtualhub.Config)) *virtualhub.Hub {
	t.Helper()
	credentials := c.register(t, id)
	cfg := virtualhub.Config{
		Config: hub.Config{
			EnrollURL: c.http.URL, Serial: credentials.Serial, Secret: credentials.Secret,
			BackoffMin: 20 * time.Millisecond, BackoffMax: 500 * time.Millisecond,
		},
		Quiet: true,
	}
	if change != nil {
		change(&cfg)
	}
	h, _ := c.start(t, cfg)
	c.connected(t, h)
	return h
}

// start runs a hub. stop ends it, waits, and fails the test if the hub violated the protocol.
func (c *cloud) start(t testing.TB, cfg virtualhub.Config) (h *virtualhub.Hub, stop func()) {
	t.Helper()
	cfg.Logger = streamstest.Logger()
	h, err := virtualhub.New(cfg)
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- h.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run() = %v", err)
		}
		c.with(h, func(r *remote) {
			if len(r.faults) > 0 {
				t.Errorf("the hub violated the protocol: %v", r.faults)
			}
		})
	})
	t.Cleanup(stop)
	return h, stop
}

func (c *cloud) connected(t testing.TB, h *virtualhub.Hub) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	if err := h.WaitConnected(ctx); err != nil {
		t.Fatalf("not connected: %v", err)
	}
}

func (c *cloud) acked(t testing.TB, h *virtualhub.Hub, seq uint64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	if err := h.WaitAcked(ctx, seq); err != nil {
		t.Fatalf("acknowledged through %d, want %d: %v", h.Status().Acked, seq, err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}
