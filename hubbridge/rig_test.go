package hubbridge_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"
	"go.uber.org/goleak"

	"hubcloud/domain"
	"hubcloud/hubbridge"
	"hubcloud/hubbridge/identity"
	"hubcloud/hubbridge/presence"
	"hubcloud/hubbridge/rpc"
	"hubcloud/streams"
	"hubcloud/streams/broker"
	"hubcloud/streams/directory"
	"hubcloud/streams/directory/directorytest"
	"hubcloud/streams/hublog"
	"hubcloud/streams/streamstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, streamstest.Leaks()...) }

const shards = 2

// installation is a broker with MQTT over TLS and everything of the hub bridge, on a data directory
// that outlives restarts.
type installation struct {
	t         testing.TB
	dir       string
	authority *identity.Authority
	org, site string
	made      int
	mqttAddr  string

	broker    *broker.Server
	conns     *streams.Conns
	buckets   *streams.Buckets
	directory *directory.Service
	logs      *hublog.Logs
	view      *presence.View
	caller    *rpc.Caller
	parts     parts
	bridges   parts
}

// parts are what runs until it is stopped.
type parts struct {
	t    testing.TB
	stop []func()
}

func (p *parts) run(what string, run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	p.stop = append(p.stop, func() {
		cancel()
		select {
		case err := <-ended:
			if !errors.Is(err, context.Canceled) {
				p.t.Errorf("%s ended with %v", what, err)
			}
		case <-time.After(time.Minute):
			p.t.Errorf("%s does not end", what)
		}
	})
}

func (p *parts) end() {
	for i := len(p.stop) - 1; i >= 0; i-- {
		p.stop[i]()
	}
	p.stop = nil
}

func start(t testing.TB) *installation {
	t.Helper()
	i := &installation{t: t, dir: t.TempDir(), mqttAddr: "127.0.0.1:0"}
	i.parts.t, i.bridges.t = t, t
	var err error
	if i.authority, err = identity.OpenAuthority(identity.AuthorityConfig{
		Dir: i.dir + "/ca", Logger: quiet(),
	}); err != nil {
		t.Fatal(err)
	}
	i.up()
	t.Cleanup(i.down)
	if i.org, _, err = i.directory.CreateOrg(t.Context(), operator(), "Org", "a@example.com"); err != nil {
		t.Fatal(err)
	}
	site, err := i.directory.CreateSite(t.Context(), operator(), i.org, "Site")
	if err != nil {
		t.Fatal(err)
	}
	i.site = site.ID
	return i
}

// up starts everything but the bridge.
func (i *installation) up() {
	i.t.Helper()
	ctx, must := context.Background(), func(err error) {
		i.t.Helper()
		if err != nil {
			i.t.Fatal(err)
		}
	}
	var err error
	i.broker, err = broker.Start(ctx, broker.Config{
		DataDir: i.dir, Shards: shards, NATSAddr: "127.0.0.1:0", MQTTAddr: i.mqttAddr,
		MQTTTLS: i.authority.ServerTLS(), SyncInterval: time.Minute, Logger: quiet(),
	})
	must(err)
	i.mqttAddr = i.broker.MQTTAddr()
	i.conns, err = i.broker.Connect(ctx)
	must(err)
	i.buckets, err = streams.OpenBuckets(ctx, i.conns, 1)
	must(err)
	log, err := directory.Open(ctx, i.conns, 1)
	must(err)
	i.directory = directory.NewService(log, directory.ServiceConfig{
		Environment: domain.EnvironmentDev, Presence: directorytest.Presence{},
	})
	i.logs, err = hublog.New(
		i.conns,
		hublog.Config{
			Retention: time.Hour,
			Logger:    quiet(),
			Epoch: func(hub domain.HubID) (domain.Epoch, bool) {
				access, ok := i.Hub(hub)
				return access.Epoch, ok
			},
		},
	)
	must(err)
	callout, err := identity.NewCallout(
		identity.CalloutConfig{
			Conns:       i.conns,
			Credentials: i.broker.Credentials(),
			Directory:   i.directory,
			Logger:      quiet(),
		},
	)
	must(err)
	i.parts.run("callout", callout.Run)
	i.view = presence.NewView(i.conns.Cloud, i.buckets.Presence, quiet(), nil)
	i.parts.run("view", i.view.Run)
	i.caller, err = rpc.NewCaller(
		i.conns, i.view, rpc.Config{Timeout: time.Second, Logger: quiet()},
	)
	must(err)
}

// down stops everything.
func (i *installation) down() {
	i.t.Helper()
	i.bridges.end()
	i.caller.Close()
	i.parts.end()
	i.logs.Close()
	i.conns.Close()
	if err := i.broker.Close(context.Background()); err != nil {
		i.t.Error(err)
	}
}

// Hub makes the installation an ingest.Ownership that is never behind.
func (i *installation) Hub(hub domain.HubID) (domain.HubAccess, bool) {
	state, _, err := i.directory.Hub(context.Background(), hub)
	if err != nil || state.OrgID == "" {
		return domain.HubAccess{}, false
	}
	return domain.HubAccess{OrgID: state.OrgID, Epoch: state.Epoch}, true
}

// bridge runs a bridge, and waits until it looks after its share.
func (i *installation) bridge(replica string) *hubbridge.Bridge {
	i.t.Helper()
	b := hubbridge.New(
		i.conns, i.buckets, i.logs, i.directory, i, i.view,
		hubbridge.Config{ReplicaID: replica, Retention: time.Hour, Log: quiet()},
	)
	i.bridges.run("bridge "+replica, b.Run)
	eventually(i.t, "a bridge that is ready", func() bool { return b.Ready() == nil })
	return b
}

// hub is a hub with a certificate, over real MQTT.
type hub struct {
	i    *installation
	id   domain.HubID
	tls  *tls.Config
	acks chan string
}

func (i *installation) hub() *hub {
	i.t.Helper()
	i.made++
	h := &hub{
		i:    i,
		id:   domain.HubID(fmt.Sprintf("hub-mqtt-0000-%04d", i.made)),
		acks: make(chan string, 10_000),
	}
	if err := i.directory.RegisterHub(i.t.Context(), operator(), h.id, make([]byte, 32)); err != nil {
		i.t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		i.t.Fatal(err)
	}
	issued, err := i.authority.IssueHub(h.id, key.Public())
	if err != nil {
		i.t.Fatal(err)
	}
	state, _, err := i.directory.Hub(i.t.Context(), h.id)
	if err != nil {
		i.t.Fatal(err)
	}
	err = i.directory.IssueCertificate(i.t.Context(), operator(), h.id, domain.IssueCertificate{
		Fingerprint: issued.Fingerprint, ExpiresAt: issued.ExpiresAt, SecretHash: state.SecretHash,
	})
	if err != nil {
		i.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(i.authority.CAPEM())
	block, _ := pem.Decode(issued.PEM)
	h.tls = &tls.Config{
		RootCAs: pool, ServerName: "localhost", MinVersion: tls.VersionTLS12,
		Certificates: []tls.Certificate{{Certificate: [][]byte{block.Bytes}, PrivateKey: key}},
	}
	return h
}

// adopt adds the hub to the organization.
func (h *hub) adopt() {
	h.i.t.Helper()
	add := domain.AddHub{OrgID: h.i.org, HubID: h.id, SiteID: h.i.site}
	if _, err := h.i.directory.AddHub(h.i.t.Context(), operator(), add); err != nil {
		h.i.t.Fatal(err)
	}
}

// connect connects and subscribes; answer deals with requests.
func (h *hub) connect(answer func(request request) string) mqtt.Client {
	h.i.t.Helper()
	options := mqtt.NewClientOptions().
		AddBroker("ssl://" + h.i.mqttAddr).
		SetClientID(string(h.id)).
		SetCleanSession(true).
		SetTLSConfig(h.tls).
		SetAutoReconnect(false).
		SetConnectRetry(false).
		SetConnectTimeout(time.Minute).
		SetProtocolVersion(4).
		SetOrderMatters(false)
	client := mqtt.NewClient(options)
	h.must(client.Connect())
	h.must(
		client.Subscribe(
			h.topic("ack"), 0,
			func(_ mqtt.Client, m mqtt.Message) { h.acks <- string(m.Payload()) },
		),
	)
	if answer != nil {
		h.must(client.Subscribe(h.topic("request"), 0, func(c mqtt.Client, m mqtt.Message) {
			var r request
			if err := json.Unmarshal(m.Payload(), &r); err != nil {
				h.i.t.Errorf("request %q: %v", m.Payload(), err)
				return
			}
			if text := answer(r); text != "" {
				c.Publish(h.topic("response/"+r.Token), 0, false, text)
			}
		}))
	}
	h.i.t.Cleanup(func() { client.Disconnect(0) })
	return client
}

// request is what a hub is asked.
type request struct {
	ID, Token, Method string
	Params            json.RawMessage
	TimeoutMS         int64 `json:"timeout_ms"`
}

func (h *hub) topic(name string) string { return "hub/" + string(h.id) + "/" + name }

func (h *hub) must(token mqtt.Token) {
	h.i.t.Helper()
	if !token.WaitTimeout(time.Minute) || token.Error() != nil {
		h.i.t.Fatalf("hub %s: %v", h.id, token.Error())
	}
}

func (h *hub) wantAck(want string) {
	h.i.t.Helper()
	for deadline := time.After(time.Minute); ; {
		select {
		case got := <-h.acks:
			if got == want {
				return
			}
		case <-deadline:
			h.i.t.Fatalf("no ack %s", want)
		}
	}
}

// told gives the types of the hub's events, with the values of observations and the reasons of
// disconnections.
func (h *hub) told() string {
	h.i.t.Helper()
	var words []string
	for after := ""; ; {
		page, err := h.i.logs.Page(h.i.t.Context(), h.id, after, 500)
		if err != nil {
			h.i.t.Fatal(err)
		}
		for _, e := range page.Events {
			var event struct {
				Type string
				Data struct {
					Value  json.Number
					Reason *string
				}
			}
			if err := json.Unmarshal(e.Envelope, &event); err != nil {
				h.i.t.Fatalf("%s: %v", e.Envelope, err)
			}
			word := strings.TrimPrefix(event.Type, "hub.")
			if event.Type == "channel.observed" {
				word = event.Data.Value.String()
			}
			if event.Data.Reason != nil {
				word += ":" + strings.ReplaceAll(*event.Data.Reason, " ", "_")
			}
			words = append(words, word)
		}
		if after = page.Next; !page.HasMore {
			return strings.Join(words, " ")
		}
	}
}

func (h *hub) eventuallyTold(want string) {
	h.i.t.Helper()
	got := ""
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); <-time.After(10 * time.Millisecond) {
		if got = h.told(); got == want {
			return
		}
	}
	h.i.t.Fatalf("the log holds\n%s\nwanted\n%s", got, want)
}

func (h *hub) eventuallyOnline(online bool) {
	h.i.t.Helper()
	eventually(h.i.t, fmt.Sprintf("online is %v", online), func() bool {
		p, ok := h.i.view.Get(h.id)
		return ok && p.Online == online
	})
}

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 15 s: %s", what)
		}
	}
}

func operator() domain.Origin {
	return domain.Origin{At: time.Now(), Actor: domain.Actor{Kind: domain.ActorOperator}}
}

// quiet shows the service's lines only with HUBCLOUD_TEST_LOG set.
func quiet() *slog.Logger {
	if os.Getenv("HUBCLOUD_TEST_LOG") == "" {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
}
