package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/kit/hub"
	"hubcloud/hubbridge/protocol"
)

const (
	// counter is the channel whose value counts the hub's events; setting is set by commands.
	counter, setting = "energy", "level"
	// secret is the enrolment secret of every hub.
	secret = "c2VjcmV0"
	// backoff is the longest pause between two connects: shorter than what is checked after a heal.
	backoff = 4 * time.Second
	// slowAck is the time from an event to its ack from which the log has it.
	slowAck = 3 * time.Second
)

// Hub is a hub of the Go library, which counts: its n-th event has the value n.
type Hub struct {
	ID     domain.HubID
	host   string
	world  *World
	lib    *hub.Hub
	random *rand.Rand // for dial, which one goroutine calls

	mu     sync.Mutex
	values []value
	// connected is what Status said last, and since when.
	connected bool
	since     time.Time
	server    string         // the one that was dialed last
	runs      map[string]int // how often each value was set
}

// value is what the simulator knows of one value of the counter.
type value struct {
	seq            uint64 // the event's number in the hub's log
	emitted, acked time.Time
}

func newHub(w *World, n int) (*Hub, error) {
	h := &Hub{
		ID: domain.HubID(fmt.Sprintf("hub-sim0-0000-%04d", n)), host: fmt.Sprintf("10.1.0.%d", n),
		world: w, random: w.Random(), runs: map[string]int{},
	}
	var err error
	h.lib, err = hub.New(hub.Config{
		EnrollURL: "https://cloud.example.com", Serial: h.ID.Serial(), Secret: secret, Handler: h,
		HTTPClient: &http.Client{Transport: h, Timeout: 30 * time.Second}, Dial: h.dial,
		BackoffMax: backoff, OnAck: h.acked, Network: &protocol.Network{},
		Logger: slog.New(slog.NewTextHandler(
			traceWriter{"hub " + h.host, w.Trace}, &slog.HandlerOptions{ReplaceAttr: withoutTime},
		)),
	})
	return h, err
}

// dial connects to one of the servers, as a load balancer would.
func (h *Hub) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	host := brokerHosts[h.random.Intn(len(brokerHosts))]
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	h.mu.Lock()
	h.server = host
	h.mu.Unlock()
	return h.world.Network.Dial(ctx, h.host, fmt.Sprintf("%s:%d", host, mqttPort))
}

// RoundTrip implements http.RoundTripper: it enrols the hub at a replica that is ready.
func (h *Hub) RoundTrip(req *http.Request) (*http.Response, error) {
	var wanted protocol.CertificateRequest
	if err := json.NewDecoder(req.Body).Decode(&wanted); err != nil {
		return nil, err
	}
	p := h.world.ready(0)
	if p == nil {
		return nil, fmt.Errorf("no replica is ready")
	}
	issued, err := p.enrolment.Issue(req.Context(), wanted)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(issued)
	return &http.Response{
		StatusCode: http.StatusCreated, Body: io.NopCloser(bytes.NewReader(body)), Request: req,
	}, err
}

// Emit emits the next value.
func (h *Hub) Emit() {
	h.mu.Lock()
	defer h.mu.Unlock()
	seq, err := h.lib.Emit(hub.Observed(1, counter, 0, len(h.values)+1))
	if err != nil {
		h.world.Failf("%s: emit: %v", h.ID, err)
		return
	}
	h.values = append(h.values, value{seq: seq, emitted: time.Now()})
}

// acked notes when values were acknowledged.
func (h *Hub) acked(through uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := len(h.values) - 1; i >= 0 && h.values[i].acked.IsZero(); i-- {
		if h.values[i].seq <= through {
			h.values[i].acked = time.Now()
			if took := time.Since(h.values[i].emitted); took > slowAck {
				h.world.Trace.Add("hub "+h.host, fmt.Sprintf("%d acknowledged after %v", i+1, took))
			}
		}
	}
}

// watch notes until ctx ends when the hub connects and disconnects.
func (h *Hub) watch(ctx context.Context) {
	for sleep(ctx, sample) == nil {
		connected := h.lib.Status().Connected
		h.mu.Lock()
		if connected != h.connected {
			h.connected, h.since = connected, time.Now()
			h.world.Trace.Add("hub "+h.host, fmt.Sprintf("connected is %t", connected))
		}
		h.mu.Unlock()
	}
}

// at returns the server that the hub is connected to, "" for none.
func (h *Hub) at() string {
	if !h.lib.Status().Connected {
		return ""
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.server
}

// changed returns when the hub has last connected or disconnected.
func (h *Hub) changed() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.since
}

// Values returns what is known of the values so far.
func (h *Hub) Values() []value {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.values)
}

// ackedValues returns how many values were acknowledged, which are the first ones.
func (h *Hub) ackedValues() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.IndexFunc(append(slices.Clone(h.values), value{}), func(v value) bool {
		return v.acked.IsZero()
	})
}

// Command implements hub.Handler.
func (h *Hub) Command(_ context.Context, cmd *hub.Command) error {
	c := channel()
	c.ChannelState = c.Commanded(cmd.Value, time.Now())
	if err := cmd.Accept(c, hub.Change{}); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.runs[string(cmd.Value)]++
	return nil
}

func channel() hub.Channel {
	return hub.Channel{
		Key: setting, Readable: true, Writable: true, Available: true,
		ChannelState: domain.NewChannelState(0, time.Now()),
	}
}

// Devices implements hub.Handler.
func (h *Hub) Devices(context.Context) ([]hub.Device, error) {
	return []hub.Device{{ID: 1, Name: "Meter", Channels: []hub.Channel{channel()}}}, nil
}

// Device implements hub.Handler.
func (h *Hub) Device(context.Context, int64) (hub.Device, error) {
	return hub.Device{ID: 1, Name: "Meter", Channels: []hub.Channel{channel()}}, nil
}

// The rest of hub.Handler, which the simulator does not call.
func (h *Hub) Forget(context.Context, int64) error                        { return nil }
func (h *Hub) OpenPairing(context.Context, string) (time.Duration, error) { return time.Minute, nil }
func (h *Hub) ClosePairing(context.Context) error                         { return nil }
func (h *Hub) OpenRemoval(context.Context) (time.Duration, error)         { return time.Minute, nil }
func (h *Hub) CloseRemoval(context.Context) error                         { return nil }
