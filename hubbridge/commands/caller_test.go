package commands_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/domain"
	"hubcloud/hubbridge/commands"
	"hubcloud/hubbridge/protocol"
	"hubcloud/streams"
	"hubcloud/streams/streamstest"
)

const hubID domain.HubID = "hub-aaaa-bbbb-cccc"

// online is a Presence: whether the view and the bucket have the hub connected.
type online struct {
	mu           sync.Mutex
	view, bucket bool
}

func (o *online) set(view, bucket bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.view, o.bucket = view, bucket
}

func (o *online) Online(domain.HubID) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.view
}

func (o *online) Fetch(context.Context, domain.HubID) (domain.Presence, bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return domain.Presence{Online: o.bucket}, o.bucket, nil
}

type testCaller struct {
	t        *testing.T
	hubs     *streams.Conns
	online   *online
	registry *prometheus.Registry
	sent     chan domain.HubID // receives each call's hub just before its request is published
	*commands.Caller
}

func newTestCaller(t *testing.T, timeout time.Duration) *testCaller {
	t.Helper()
	broker := streamstest.New(t)
	c := &testCaller{
		t:        t,
		hubs:     broker.Connect(t),
		online:   &online{view: true, bucket: true},
		registry: prometheus.NewRegistry(),
		sent:     make(chan domain.HubID, 1000),
	}
	var err error
	c.Caller, err = commands.NewCaller(broker.Connect(t), c.online, commands.CallerConfig{
		Timeout: timeout, Logger: slog.New(slog.DiscardHandler), Metrics: c.registry,
		OnRequest: func(id domain.HubID, _ string) { c.sent <- id },
	})
	streamstest.Must(t, err)
	t.Cleanup(c.Close)
	return c
}

// answers makes the hub answer requests with what answer returns, and not at all for "".
func (c *testCaller) answers(answer func(protocol.Request) string) *nats.Subscription {
	c.t.Helper()
	nc := c.hubs.Shard(hubID)
	sub, err := nc.Subscribe(streams.RequestSubject(hubID), func(msg *nats.Msg) {
		var request protocol.Request
		if err := json.Unmarshal(msg.Data, &request); err != nil {
			c.t.Errorf("request %q: %v", msg.Data, err)
			return
		}
		go func() {
			if text := answer(request); text != "" {
				_ = nc.Publish(
					streams.ResponseSubject(hubID, strings.ReplaceAll(request.Token, "/", ".")),
					[]byte(text),
				)
			}
		}()
	})
	streamstest.Must(c.t, err)
	c.t.Cleanup(func() { streams.Unsubscribe(sub) })
	streamstest.Must(c.t, nc.Flush())
	return sub
}

// awaitRequest waits until a call is about to publish its request.
func (c *testCaller) awaitRequest() { <-c.sent }

func echo(request protocol.Request) string {
	return fmt.Sprintf(
		`{"id":%q,"result":{"params":%s,"timeout_ms":%d}}`, request.ID, request.Params,
		request.TimeoutMS,
	)
}

func (c *testCaller) call(method string, result any) error {
	return c.Call(c.t.Context(), hubID, method, map[string]int{"device_id": 3}, into(result))
}

// into reads a result into a variable; nil reads nothing.
func into(result any) func([]byte) error {
	if result == nil {
		return nil
	}
	return func(raw []byte) error { return json.Unmarshal(raw, result) }
}

// TestCall: a hub is called also if the bucket has it connected and this replica's view does not yet.
func TestCall(t *testing.T) {
	t.Parallel()
	c := newTestCaller(t, 5*time.Second)
	c.online.set(false, true)
	c.answers(echo)
	var result struct {
		Params struct {
			DeviceID int `json:"device_id"`
		}
		TimeoutMS int `json:"timeout_ms"`
	}
	if err := c.call(protocol.MethodDevicesGet, &result); err != nil || result.Params.DeviceID != 3 ||
		result.TimeoutMS != 5000 {
		t.Errorf("Call: got %+v, %v, want the params and timeout of the request", result, err)
	}
	if err := c.call("devices.eat", nil); err == nil {
		t.Error("Call of an unknown method: no error")
	}
}

// TestConcurrentCalls: a slow answer delays no other, and each reaches its own call.
func TestConcurrentCalls(t *testing.T) {
	t.Parallel()
	c := newTestCaller(t, 10*time.Second)
	release := make(chan struct{})
	c.answers(func(request protocol.Request) string {
		if strings.Contains(string(request.Params), "slow") {
			<-release
		}
		return fmt.Sprintf(`{"id":%q,"result":%s}`, request.ID, request.Params)
	})
	var slow, quick sync.WaitGroup
	call := func(wait *sync.WaitGroup, value string) {
		wait.Go(func() {
			var result map[string]string
			if err := c.Call(t.Context(), hubID, protocol.MethodDevicesList, map[string]string{
				"x": value,
			}, into(&result)); err != nil || result["x"] != value {
				t.Errorf("Call with %s: got %v, %v", value, result, err)
			}
		})
	}
	call(&slow, "slow")
	for n := range 100 {
		call(&quick, fmt.Sprint(n))
	}
	quick.Wait()
	close(release)
	slow.Wait()
}

func TestCallTimeout(t *testing.T) {
	t.Parallel()
	c := newTestCaller(t, 100*time.Millisecond)
	late := make(chan protocol.Request, 1)
	c.answers(func(request protocol.Request) string { late <- request; return "" })
	wantCode(t, c.call(protocol.MethodDevicesList, nil), domain.CodeHubTimeout)
	// Late answers, and answers that no call waits for, are dropped.
	request := <-late
	nc := c.hubs.Shard(hubID)
	for _, token := range []string{request.Token, request.Token + "/x", "x"} {
		subject := streams.ResponseSubject(hubID, strings.ReplaceAll(token, "/", "."))
		streamstest.Must(t, nc.Publish(subject, []byte(echo(request))))
	}
	if got := c.counted(protocol.MethodDevicesList, "hub_timeout"); got != 1 {
		t.Errorf("counted %d timeouts, want 1", got)
	}
}

// counted returns the number of calls of a method with the outcome, and fails if there are calls
// with another method or outcome.
func (c *testCaller) counted(method, outcome string) (count uint64) {
	c.t.Helper()
	families, err := c.registry.Gather()
	if err != nil || len(families) != 1 || families[0].GetName() != "hubcloud_hubbridge_call_duration_seconds" {
		c.t.Fatalf("%d families of metrics, %v", len(families), err)
	}
	for _, metric := range families[0].GetMetric() {
		label := metric.GetLabel()
		n := metric.GetHistogram().GetSampleCount()
		if label[0].GetValue() == method && label[1].GetValue() == outcome {
			count = n
		} else if n != 0 {
			c.t.Errorf("counted %d calls as %v, want none", n, label)
		}
	}
	return count
}

// TestForgedAnswer: an answer under the id of another hub is dropped.
func TestForgedAnswer(t *testing.T) {
	t.Parallel()
	c := newTestCaller(t, 300*time.Millisecond)
	other := domain.HubID("hub-dddd-dddd-dddd")
	c.answers(func(request protocol.Request) string {
		subject := streams.ResponseSubject(other, strings.ReplaceAll(request.Token, "/", "."))
		_ = c.hubs.Shard(hubID).Publish(subject, []byte(echo(request)))
		return ""
	})
	wantCode(t, c.call(protocol.MethodDevicesList, nil), domain.CodeHubTimeout)
}

func TestCallCanceled(t *testing.T) {
	t.Parallel()
	c := newTestCaller(t, 10*time.Second)
	ctx, cancel := context.WithCancel(t.Context())
	c.answers(func(protocol.Request) string { cancel(); return "" })
	if err := c.Call(ctx, hubID, protocol.MethodDevicesList, struct{}{}, nil); !errors.Is(
		err, context.Canceled,
	) {
		t.Error(err)
	}
}

// TestHubSubscribesLate: a hub that has just connected gets the request after it has subscribed,
// exactly once.
func TestHubSubscribesLate(t *testing.T) {
	t.Parallel()
	c := newTestCaller(t, 10*time.Second)
	called := make(chan error, 1)
	go func() { called <- c.call(protocol.MethodDevicesList, nil) }()
	c.awaitRequest()
	asked := make(chan struct{}, 10)
	c.answers(func(request protocol.Request) string { asked <- struct{}{}; return echo(request) })
	if err := <-called; err != nil {
		t.Error(err)
	}
	if len(asked) != 1 {
		t.Errorf("the hub got %d requests, want 1", len(asked))
	}
}

// TestHubNeverSubscribes: the call ends early, and at once when the hub disconnects.
func TestHubNeverSubscribes(t *testing.T) {
	t.Parallel()
	c := newTestCaller(t, 4*time.Second)
	wantCode(t, c.call(protocol.MethodDevicesList, nil), domain.CodeHubError)
	c.awaitRequest() // of the first call
	go func() {
		c.awaitRequest()
		c.online.set(false, false)
	}()
	wantCode(t, c.call(protocol.MethodDevicesList, nil), domain.CodeHubOffline)
}
