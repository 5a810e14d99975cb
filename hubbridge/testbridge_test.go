package hubbridge_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"
	"go.uber.org/goleak"

	"hubcloud/domain"
	"hubcloud/hubbridge"
	"hubcloud/hubbridge/mqtttest"
	"hubcloud/hubbridge/presence"
	"hubcloud/streams/installationtest"
	"hubcloud/streams/streamstest"
	"hubcloud/streams/views"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, streamstest.Leaks()...) }

const shards = 2

// testBridge is an installation with a presence view. Tests start the bridges.
type testBridge struct {
	*mqtttest.Installation
	t    testing.TB
	made int // hubs created so far
	view *presence.View
	// stop has the functions that stop the running parts, in the order of their start.
	stop []func()
}

func newTestBridge(t testing.TB) *testBridge {
	t.Helper()
	i := &testBridge{
		t: t, Installation: mqtttest.Start(t, shards, installationtest.Config{Unserved: true}),
	}
	i.startView()
	t.Cleanup(i.stopParts)
	return i
}

// startView starts the presence view.
func (i *testBridge) startView() {
	i.t.Helper()
	i.view = presence.NewView(i.Conns.Cloud, i.Buckets.Presence, streamstest.Logger(), nil)
	i.run("presence view", i.view.Run)
}

// stopParts stops all parts, bridges included, the last started first.
func (i *testBridge) stopParts() {
	for _, stop := range slices.Backward(i.stop) {
		stop()
	}
	i.stop = nil
}

// restart stops the installation and starts it again without bridges.
func (i *testBridge) restart() {
	i.t.Helper()
	i.stopParts()
	i.Down(i.t)
	i.Up(i.t)
	i.startView()
}

// run runs a part until stop or stopParts is called.
func (i *testBridge) run(name string, run func(context.Context) error) (stop func()) {
	i.t.Helper()
	stop = streamstest.Run(i.t, name, run)
	i.stop = append(i.stop, stop)
	return stop
}

// bridge runs a bridge and waits until it is ready.
func (i *testBridge) bridge(replica string) (b *hubbridge.Bridge, stop func()) {
	i.t.Helper()
	written, err := views.New(views.Config{
		Conns: i.Conns, Journal: i.Journals, Retention: time.Hour, Logger: streamstest.Logger(),
		IsReleased: func(context.Context, domain.HubID) (bool, error) { return false, nil },
	})
	streamstest.Must(i.t, err)
	b, err = hubbridge.New(
		i.Conns, i.Buckets, i.Journals, written, i.HubLogs, i.Directory, i, i.view,
		hubbridge.Config{ReplicaID: replica, Retention: time.Hour, Logger: streamstest.Logger()},
	)
	streamstest.Must(i.t, err)
	stop = i.run("bridge "+replica, b.Run)
	streamstest.Eventually(i.t, "the bridge is ready", func() bool { return b.Ready() == nil })
	return b, stop
}

// hub is a hub with a certificate, over real MQTT.
type hub struct {
	i    *testBridge
	id   domain.HubID
	tls  *tls.Config
	acks chan string
}

// hub returns a new hub that is in the inventory and has a certificate.
func (i *testBridge) hub() *hub {
	i.t.Helper()
	i.made++
	h := &hub{
		i:    i,
		id:   domain.HubID(fmt.Sprintf("hub-mqtt-0000-%04d", i.made)),
		acks: make(chan string, 10_000),
	}
	i.RegisterHub(i.t, h.id)
	h.tls = i.IssueHub(i.t, h.id)
	return h
}

// adopt adds the hub to the organization.
func (h *hub) adopt() {
	h.i.t.Helper()
	h.i.AddHub(h.i.t, h.id)
}

// connect connects the hub until the test ends and subscribes to its acks.
func (h *hub) connect() mqtt.Client {
	h.i.t.Helper()
	client := mqtt.NewClient(h.i.ClientOptions(h.id, h.tls))
	h.must(client.Connect())
	h.must(
		client.Subscribe(
			h.topic("ack"), 0,
			func(_ mqtt.Client, m mqtt.Message) { h.acks <- string(m.Payload()) },
		),
	)
	h.i.t.Cleanup(func() { client.Disconnect(0) })
	return client
}

func (h *hub) topic(name string) string { return "hub/" + string(h.id) + "/" + name }

// must waits for token, and fails the test with its error.
func (h *hub) must(token mqtt.Token) {
	h.i.t.Helper()
	if !token.WaitTimeout(time.Minute) || token.Error() != nil {
		h.i.t.Fatalf("hub %s: %v", h.id, token.Error())
	}
}

// wantAck waits for the ack want and ignores others.
func (h *hub) wantAck(want string) {
	h.i.t.Helper()
	for deadline := time.After(time.Minute); ; {
		select {
		case got := <-h.acks:
			if got == want {
				return
			}
		case <-deadline:
			h.i.t.Fatalf("hub %s: got no ack, want %s", h.id, want)
		}
	}
}

// eventuallyLogged waits until EventLog returns one of wants for the hub.
func (h *hub) eventuallyLogged(wants ...string) {
	h.i.t.Helper()
	streamstest.EventuallyNil(h.i.t, "event log of "+string(h.id), func() error {
		if got := h.i.EventLog(h.i.t, h.id); !slices.Contains(wants, got) {
			return fmt.Errorf("got\n%s\nwant\n%s", got, strings.Join(wants, "\nor\n"))
		}
		return nil
	})
}

// eventuallyOnline waits until the presence view reports the hub as online, or as offline if online
// is false.
func (h *hub) eventuallyOnline(online bool) {
	h.i.t.Helper()
	streamstest.Eventually(h.i.t, fmt.Sprintf("hub %s: online is %t", h.id, online), func() bool {
		p, ok := h.i.view.Get(h.id)
		return ok && p.Online == online
	})
}
