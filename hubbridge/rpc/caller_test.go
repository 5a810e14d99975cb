package rpc_test

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
	"go.uber.org/goleak"

	"hubcloud/domain"
	"hubcloud/hubbridge/protocol"
	"hubcloud/hubbridge/rpc"
	"hubcloud/streams"
	"hubcloud/streams/streamstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, streamstest.Leaks()...) }

const hub domain.HubID = "hub-aaaa-bbbb-cccc"

// online says which hubs are connected: what the view knows, and what the bucket has.
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

type rig struct {
	t        *testing.T
	hubs     *streams.Conns
	online   *online
	registry *prometheus.Registry
	*rpc.Caller
}

func newRig(t *testing.T, timeout time.Duration) *rig {
	t.Helper()
	broker := streamstest.New(t)
	r := &rig{
		t:        t,
		hubs:     broker.Connect(t),
		online:   &online{view: true, bucket: true},
		registry: prometheus.NewRegistry(),
	}
	var err error
	r.Caller, err = rpc.NewCaller(
		broker.Connect(t), r.online,
		rpc.Config{Timeout: timeout, Logger: slog.New(slog.DiscardHandler), Metrics: r.registry},
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// answers has the hub answer requests; what answer gives is sent, unless it is empty.
func (r *rig) answers(answer func(protocol.Request) string) *nats.Subscription {
	r.t.Helper()
	nc := r.hubs.Shard(hub)
	sub, err := nc.Subscribe(streams.RequestSubject(hub), func(msg *nats.Msg) {
		var request protocol.Request
		if err := json.Unmarshal(msg.Data, &request); err != nil {
			r.t.Errorf("request %q: %v", msg.Data, err)
			return
		}
		go func() {
			if text := answer(request); text != "" {
				_ = nc.Publish(
					streams.ResponseSubject(hub, strings.ReplaceAll(request.Token, "/", ".")),
					[]byte(text),
				)
			}
		}()
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = sub.Unsubscribe() })
	if err := nc.Flush(); err != nil {
		r.t.Fatal(err)
	}
	return sub
}

func echo(request protocol.Request) string {
	return fmt.Sprintf(
		`{"id":%q,"result":{"params":%s,"timeout_ms":%d}}`, request.ID, request.Params,
		request.TimeoutMS,
	)
}

func (r *rig) call(method string, result any) error {
	return r.Call(r.t.Context(), hub, method, map[string]int{"device_id": 3}, into(result))
}

// into reads a result into a variable; nil reads nothing.
func into(result any) func([]byte) error {
	if result == nil {
		return nil
	}
	return func(raw []byte) error { return json.Unmarshal(raw, result) }
}

func wantCode(t *testing.T, err error, code domain.Code) {
	t.Helper()
	if err == nil || domain.CodeOf(err) != code {
		t.Errorf("%v, wanted %s", err, code)
	}
}

func TestCall(t *testing.T) {
	t.Parallel()
	r := newRig(t, 5*time.Second)
	r.answers(echo)
	var result struct {
		Params struct {
			DeviceID int `json:"device_id"`
		}
		TimeoutMS int `json:"timeout_ms"`
	}
	if err := r.call(protocol.MethodDevicesGet, &result); err != nil ||
		result.Params.DeviceID != 3 ||
		result.TimeoutMS != 5000 {
		t.Errorf("%+v, %v", result, err)
	}
	if err := r.call("devices.eat", nil); err == nil {
		t.Error("a method that there is not")
	}
}

// TestSideBySide: a slow answer holds up no other, and each goes to who asked.
func TestSideBySide(t *testing.T) {
	t.Parallel()
	r := newRig(t, 10*time.Second)
	release := make(chan struct{})
	r.answers(func(request protocol.Request) string {
		if strings.Contains(string(request.Params), "slow") {
			<-release
		}
		return fmt.Sprintf(`{"id":%q,"result":%s}`, request.ID, request.Params)
	})
	var slow, quick sync.WaitGroup
	call := func(wait *sync.WaitGroup, value string) {
		wait.Go(func() {
			var result map[string]string
			if err := r.Call(t.Context(), hub, protocol.MethodDevicesList, map[string]string{
				"x": value,
			}, into(&result)); err != nil ||
				result["x"] != value {
				t.Errorf("%s: %v, %v", value, result, err)
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

func TestOffline(t *testing.T) {
	t.Parallel()
	r := newRig(t, 10*time.Second)
	r.answers(func(protocol.Request) string { t.Error("asked"); return "" })
	r.online.set(false, false)
	began := time.Now()
	wantCode(t, r.call(protocol.MethodDevicesList, nil), domain.CodeHubOffline)
	if took := time.Since(began); took > 8*time.Second { // the hub has ten
		t.Errorf("it took %v", took)
	}
}

// TestViewBehind: the bucket has the connection, and this replica's view has not heard of it.
func TestViewBehind(t *testing.T) {
	t.Parallel()
	r := newRig(t, 10*time.Second)
	r.answers(echo)
	r.online.set(false, true)
	if err := r.call(protocol.MethodDevicesList, nil); err != nil {
		t.Error(err)
	}
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	r := newRig(t, 100*time.Millisecond)
	late := make(chan protocol.Request, 1)
	r.answers(func(request protocol.Request) string { late <- request; return "" })
	wantCode(t, r.call(protocol.MethodDevicesList, nil), domain.CodeHubTimeout)
	// What comes later, or was never asked for, is passed over.
	request := <-late
	nc := r.hubs.Shard(hub)
	for _, token := range []string{request.Token, request.Token + "/x", "x"} {
		if err := nc.Publish(streams.ResponseSubject(hub, strings.ReplaceAll(token, "/", ".")), []byte(echo(request))); err != nil {
			t.Fatal(err)
		}
	}
	if got := r.counted(protocol.MethodDevicesList, "hub_timeout"); got != 1 {
		t.Errorf("%d time-outs are counted", got)
	}
}

// counted gives how many calls of a method had an outcome, and fails when others had any.
func (r *rig) counted(method, outcome string) (count uint64) {
	r.t.Helper()
	families, err := r.registry.Gather()
	if err != nil || len(families) != 1 ||
		families[0].GetName() != "hubcloud_hubbridge_call_duration_seconds" {
		r.t.Fatalf("%d families of metrics, %v", len(families), err)
	}
	for _, metric := range families[0].GetMetric() {
		label := metric.GetLabel()
		n := metric.GetHistogram().GetSampleCount()
		if label[0].GetValue() == method && label[1].GetValue() == outcome {
			count = n
		} else if n != 0 {
			r.t.Errorf("%d calls are counted as %v", n, label)
		}
	}
	return count
}

// TestForgedAnswer: a hub can answer only under its own id.
func TestForgedAnswer(t *testing.T) {
	t.Parallel()
	r := newRig(t, 300*time.Millisecond)
	other := domain.HubID("hub-dddd-dddd-dddd")
	r.answers(func(request protocol.Request) string {
		_ = r.hubs.Shard(hub).
			Publish(streams.ResponseSubject(other, strings.ReplaceAll(request.Token, "/", ".")), []byte(echo(request)))
		return ""
	})
	wantCode(t, r.call(protocol.MethodDevicesList, nil), domain.CodeHubTimeout)
}

func TestCanceled(t *testing.T) {
	t.Parallel()
	r := newRig(t, 10*time.Second)
	ctx, cancel := context.WithCancel(t.Context())
	r.answers(func(protocol.Request) string { cancel(); return "" })
	if err := r.Call(ctx, hub, protocol.MethodDevicesList, struct{}{}, nil); !errors.Is(
		err, context.Canceled,
	) {
		t.Error(err)
	}
}

// TestNotListeningYet: a hub that has connected a moment ago gets the request once it has
// subscribed, once.
func TestNotListeningYet(t *testing.T) {
	t.Parallel()
	r := newRig(t, 10*time.Second)
	called := make(chan error, 1)
	go func() { called <- r.call(protocol.MethodDevicesList, nil) }()
	<-time.After(120 * time.Millisecond)
	asked := make(chan struct{}, 10)
	r.answers(func(request protocol.Request) string { asked <- struct{}{}; return echo(request) })
	if err := <-called; err != nil {
		t.Error(err)
	}
	if len(asked) != 1 {
		t.Errorf("asked %d times", len(asked))
	}
}

func TestNeverListening(t *testing.T) {
	t.Parallel()
	r := newRig(t, time.Second)
	wantCode(t, r.call(protocol.MethodDevicesList, nil), domain.CodeHubError)
	go func() {
		<-time.After(80 * time.Millisecond)
		r.online.set(false, false)
	}()
	wantCode(t, r.call(protocol.MethodDevicesList, nil), domain.CodeHubOffline)
}

func BenchmarkCall(b *testing.B) {
	broker := streamstest.New(b)
	hubs := broker.Connect(b)
	caller, err := rpc.NewCaller(broker.Connect(b), &online{view: true}, rpc.Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer caller.Close()
	nc := hubs.Shard(hub)
	sub, err := nc.Subscribe(streams.RequestSubject(hub), func(msg *nats.Msg) {
		var request protocol.Request
		_ = json.Unmarshal(msg.Data, &request)
		_ = nc.Publish(
			streams.ResponseSubject(hub, strings.ReplaceAll(request.Token, "/", ".")),
			[]byte(`{"id":"`+request.ID+`","result":{}}`),
		)
	})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := nc.Flush(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := caller.Call(b.Context(), hub, protocol.MethodDevicesList, struct{}{}, nil); err != nil {
			b.Fatal(err)
		}
	}
}
