package hubbridge_test

import (
	"fmt"
	"strings"
	"testing"

	mqtt "github.com/eclipse/paho.mqtt.golang"
	"github.com/nats-io/nats.go"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/streamstest"
)

// hello is the hello of a hub whose log "a" has no events yet.
const hello = `{"protocol":1,"log":"a","oldest":1,"newest":0,"firmware":{"version":"1"},"network":{"type":"wifi","interface":"w0","metered":false}}`

// quiesce is how long, in ms, an orderly disconnect waits until DISCONNECT is sent. A client that
// waits shorter may close the connection without it.
const quiesce = 60_000

// goOnline returns a new hub of the organization that is connected and has said hello.
func goOnline(i *testBridge) (*hub, mqtt.Client) {
	i.t.Helper()
	h := i.hub()
	h.adopt()
	client := h.connect()
	h.eventuallyLogged("connected")
	h.must(client.Publish(h.topic("hello"), 0, false, hello))
	h.wantAck(`{"log":"a","through":0}`)
	return h, client
}

// events publishes one message with the events numbered first to last.
func (h *hub) events(client mqtt.Client, first, last int) {
	h.i.t.Helper()
	var all []string
	for seq := first; seq <= last; seq++ {
		all = append(
			all,
			fmt.Sprintf(
				`{"seq":%d,"type":"channel.observed","device_id":1,"time":"2026-01-02T03:04:05Z","clock_trusted":true,"data":{"value":%d}}`,
				seq, seq,
			),
		)
	}
	h.must(
		client.Publish(
			h.topic("events"), 0, false, `{"log":"a","events":[`+strings.Join(all, ",")+`]}`,
		),
	)
}

// TestOverMQTT holds that a hub's event log records its connections, its events, an orderly
// disconnect, and a second connection with the same client id, all over real MQTT.
func TestOverMQTT(t *testing.T) {
	t.Parallel()
	i := newTestBridge(t)
	i.bridge("r1")
	h, client := goOnline(i)
	h.events(client, 1, 3)
	h.wantAck(`{"log":"a","through":3}`)
	client.Disconnect(quiesce)
	h.eventuallyOnline(false)
	h.connect()
	h.eventuallyOnline(true)
	h.connect()
	h.eventuallyLogged(
		"connected 1 2 3 disconnected:client_closed " +
			"connected disconnected:duplicate_client_id connected",
	)
	p, ok, err := i.view.Fetch(t.Context(), h.id)
	if err != nil || !ok || !p.Online || p.PublicIP != "127.0.0.1" || string(p.Firmware) != `{"version":"1"}` ||
		!strings.Contains(string(p.Network), `"reported_at":"2`) {
		t.Errorf("Fetch = %+v, %v, want online with firmware, network and address", p, err)
	}
}

// TestBrokerEnds checks that connections to a broker that has stopped are recorded as ended,
// although the broker reported no disconnects, and that they differ from those that hubs have lost:
// after a restart of the service all hubs were alarms, with no reason.
func TestBrokerEnds(t *testing.T) {
	t.Parallel()
	i := newTestBridge(t)
	i.bridge("r1")
	away, _ := goOnline(i)
	back, _ := goOnline(i)
	early, _ := goOnline(i)
	i.restart()
	early.connect() // before the bridge starts
	i.bridge("r1")
	back.connect() // while the bridge compares its records with the broker's list
	away.eventuallyLogged("connected disconnected:server_shutdown")
	back.eventuallyLogged("connected disconnected:server_shutdown connected")
	early.eventuallyLogged("connected disconnected:server_shutdown connected")
	for h, online := range map[*hub]bool{away: false, back: true, early: true} {
		h.eventuallyOnline(online)
		p, _ := i.view.Get(h.id)
		if lost := p.Reason != nil && *p.Reason == domain.ReasonServerShutdown; lost == online {
			t.Errorf("hub %s: got %+v, want server shutdown for the hub that is away", h.id, p)
		}
	}
}

// TestBridgeAway holds that a bridge that starts records the transitions that happened while no
// bridge ran.
func TestBridgeAway(t *testing.T) {
	t.Parallel()
	i := newTestBridge(t)
	_, stop := i.bridge("r1")
	stays, _ := goOnline(i)
	disconnects, client := goOnline(i)
	connects, reconnects := i.hub(), i.hub()
	connects.adopt()
	reconnects.adopt()
	old := reconnects.connect()
	reconnects.eventuallyLogged("connected")
	stop()

	client.Disconnect(quiesce)
	old.Disconnect(quiesce)
	reconnects.connect()
	connects.connect()
	i.bridge("r1")
	disconnects.eventuallyLogged("connected disconnected:null")
	connects.eventuallyLogged("connected")
	reconnects.eventuallyLogged("connected disconnected:null connected")
	stays.eventuallyLogged("connected")
}

// TestLongList holds that a comparison reads all pages of the broker's list.
func TestLongList(t *testing.T) {
	t.Parallel()
	i := newTestBridge(t)
	h := i.hub()
	h.adopt()
	for range 1030 { // more than a page of connections that the broker lists before the hub's
		nc, err := nats.Connect("nats://"+i.Broker.NATSAddr(), credentials(i, h.id))
		streamstest.Must(t, err)
		defer nc.Close()
	}
	h.connect()
	i.bridge("r1")
	h.eventuallyLogged("connected")
}

// TestNotReadyAfterStop holds that Ready names the missing shards of a bridge that has stopped.
func TestNotReadyAfterStop(t *testing.T) {
	t.Parallel()
	i := newTestBridge(t)
	b, stop := i.bridge("r1")
	stop()
	if err := b.Ready(); err == nil || !strings.Contains(err.Error(), "not served") {
		t.Errorf("Ready = %v, want an error with %q", err, "not served")
	}
}

// credentials returns the login to the account of the hub's shard.
func credentials(i *testBridge, hub domain.HubID) nats.Option {
	user := i.Broker.Credentials().Users[streams.ShardAccount(streams.ShardOf(hub, shards))]
	return nats.UserInfo(user.User, user.Password)
}
