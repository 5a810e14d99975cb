package identity_test

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/domain"
	"hubcloud/hubbridge/identity"
	"hubcloud/streams"
	"hubcloud/streams/directory"
	"hubcloud/streams/streamstest"
)

// TestImpostorsAreRejected connects with wrong client ids, users, certificates and TLS versions.
func TestImpostorsAreRejected(t *testing.T) {
	t.Parallel()
	i := start(t)
	h, other := i.newHub(t, 1), i.newHub(t, 2)
	user := i.broker.Credentials().Users[streams.AccountCloud]

	mustBeRejected(t, "another client id", h.options().SetClientID(string(other.id)))
	mustBeRejected(
		t, "a client id in upper case", h.options().SetClientID(strings.ToUpper(string(h.id))),
	)
	mustBeRejected(t, "an empty client id", h.options().SetClientID(""))
	mustBeRejected(
		t, "the service's own user over MQTT",
		h.options().SetUsername(user.User).SetPassword(user.Password),
	)
	mustBeRejected(t, "the service's own user over MQTT, as itself",
		h.options().SetClientID("service").SetUsername(user.User).SetPassword(user.Password))

	bare := h.tls()
	bare.Certificates = nil
	mustBeRejected(t, "no certificate", h.options().SetTLSConfig(bare))
	mustBeRejected(t, "no certificate, but the service's own user",
		h.options().SetTLSConfig(bare).SetUsername(user.User).SetPassword(user.Password))
	mustBeRejected(
		t,
		"no TLS",
		mqtt.NewClientOptions().AddBroker("tcp://"+i.broker.MQTTAddr()).SetClientID(string(h.id)).
			SetConnectTimeout(testTimeout).SetUsername(user.User).SetPassword(user.Password),
	)
	old := h.tls()
	old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	mustBeRejected(t, "TLS 1.1", h.options().SetTLSConfig(old))

	foreign, err := identity.OpenAuthority(
		identity.AuthorityConfig{Dir: t.TempDir(), Logger: streamstest.Logger()},
	)
	streamstest.Must(t, err)
	mustBeRejected(
		t, "a certificate of another authority",
		h.options().SetTLSConfig(certifiedBy(t, foreign, h, h.id)),
	)
	mustBeRejected(
		t, "a certificate of the authority that the directory does not know",
		h.options().SetTLSConfig(certifiedBy(t, i.authority, h, h.id)),
	)
	mustBeRejected(
		t, "a certificate that the hub signed itself", h.options().SetTLSConfig(selfSigned(t, h)),
	)
	unknown := hubID(9)
	mustBeRejected(
		t,
		"a hub that is not in the inventory",
		h.options().
			SetClientID(string(unknown)).
			SetTLSConfig(certifiedBy(t, i.authority, h, unknown)),
	)

	mustConnect(t, h.options().SetUsername("anything").SetPassword("anything")) // as some MQTT libraries always do
}

// TestOldCertificatesAreRejected: a hub has one certificate. Once it has a new one, connections
// with the former are rejected, and so are connections with a revoked one.
func TestOldCertificatesAreRejected(t *testing.T) {
	t.Parallel()
	i := start(t)
	first := i.newHub(t, 1)
	_, lost := mustConnect(t, first.options())
	second := i.enrol(t, first.id)
	select {
	case <-lost:
		t.Fatal("the connection with the former certificate ended at once")
	default:
	}
	// A hub that repeated it cost others' connections a callout and a read of the directory each time.
	var callouts atomic.Int64
	sub, err := i.conns.Callout.Subscribe("$SYS.REQ.USER.AUTH", func(*nats.Msg) { callouts.Add(1) })
	if err == nil {
		err = i.conns.Callout.Flush()
	}
	streamstest.Must(t, err)
	began := time.Now()
	for range 40 {
		mustBeRejected(t, "a former certificate", first.options())
	}
	allowed := 21 + int64(time.Since(began)/(6*time.Second))
	if n := callouts.Load(); n < 20 || n > allowed {
		t.Errorf("40 connections with a former certificate: got %d callouts, want 20 to %d", n, allowed)
	}
	streams.Unsubscribe(sub)
	client, _ := mustConnect(t, second.options())
	client.Disconnect(0)
	i.add(t, first.id)
	i.resetLink(t, first.id)
	mustBeRejected(t, "a revoked certificate", second.options())
	mustConnect(t, i.enrol(t, first.id).options())
}

// subscriptionRejected is the return code of a SUBACK for a topic that is not granted (MQTT 3.1.1,
// 3.9.3).
const subscriptionRejected = 0x80

// TestHubReachesOnlyItsOwnTopics: a hub can neither publish nor subscribe outside its own topics.
// Subscriptions in all accounts check that no message of the attacker arrives.
func TestHubReachesOnlyItsOwnTopics(t *testing.T) {
	t.Parallel()
	i := start(t)
	victim := i.newHub(t, 0)
	attacker := i.newHub(t, 1)
	for n := 2; i.conns.Shard(attacker.id) != i.conns.Shard(victim.id); n++ {
		// Within one account only the permissions of the hubs separate them.
		attacker = i.newHub(t, n)
	}
	received := make(chan *nats.Msg, 1000)
	for _, nc := range append([]*nats.Conn{i.conns.Cloud}, i.conns.Shards...) {
		for _, subject := range []string{"hub.>", "log.>", "feed.>", "directory.>", "victim.>"} {
			if _, err := nc.ChanSubscribe(subject, received); err != nil {
				t.Fatal(err)
			}
		}
		streamstest.Must(t, nc.Flush())
	}
	own := "hub/" + string(attacker.id)
	foreign := "hub/" + string(victim.id)

	client, _ := mustConnect(
		t, attacker.options().SetBinaryWill(foreign+"/events", []byte("will"), 1, true),
	)
	for _, topic := range []string{
		foreign + "/events", foreign + "/hello", foreign + "/response/x", foreign + "/ack",
		foreign + "/request",
		own + "/ack", own + "/request", own, own + "/other", own + "/hello/more",
		own + "/response", "hub/*/events", "hub/>", "*/" + string(victim.id) + "/events",
		"log/" + string(attacker.id) + "/event/device",
		"feed/" + string(attacker.id) + "/event/device", "directory/hub/" + string(attacker.id),
		"$SYS/REQ/USER/AUTH", "$SYS/REQ/SERVER/PING", "$JS/API/STREAM/LIST",
		"$JS/API/STREAM/DELETE/HUB_" + string(victim.id), "$KV/presence/" + string(victim.id),
		"$MQTT/msgs/x", "$MQTT/sess/x", "victim/of/nothing",
	} {
		for qos := range byte(2) {
			if err := wait(t, client.Publish(topic, qos, qos == 1, "attack")); err != nil {
				t.Fatalf("publish %s: %v", topic, err)
			}
		}
	}
	for _, topic := range []string{
		"#", "+/+/+", "hub/#", "hub/+/ack", "hub/+/request", foreign + "/ack",
		foreign + "/request", foreign + "/#", own + "/#", own + "/+", own + "/ack/#",
		own + "/hello", own + "/events", own + "/response/#", "hub/*/ack", "hub/>", ">", "*",
		"$SYS/#", "$SYS/ACCOUNT/+/CONNECT", "$MQTT/#", "$MQTT/sub/#", "$MQTT/sub/+",
		"+/sub/+", "$JS/#", "$JS/API/INFO", "$KV/#", "_INBOX/#", "log/#", "feed/#", "directory/#",
	} {
		for qos := range byte(3) {
			token := client.Subscribe(topic, qos, func(_ mqtt.Client, m mqtt.Message) {
				t.Errorf("the attacker got %s on %s", m.Payload(), m.Topic())
			})
			if err := wait(t, token); err == nil &&
				token.(*mqtt.SubscribeToken).Result()[topic] != subscriptionRejected {
				t.Errorf("subscribed to %s at QoS %d", topic, qos)
			}
		}
	}
	mustHaveNothingRetained(t, i)

	// A message of the service to the victim reaches only the victim.
	victimClient, _ := mustConnect(t, victim.options())
	got := make(chan string, 10)
	receive := func(_ mqtt.Client, m mqtt.Message) { got <- string(m.Payload()) }
	streamstest.Must(t, wait(t, victimClient.Subscribe(foreign+"/ack", 1, receive)))
	streamstest.Must(t, i.conns.Shard(victim.id).Publish(
		streams.AckSubject(victim.id), []byte("for the victim"),
	))
	if text := <-got; text != "for the victim" {
		t.Errorf("the victim got %q", text)
	}
	<-received // that message itself
	// The broker publishes a will when the connection is cut.
	if _, err := identity.Disconnect(t.Context(), i.conns, attacker.id); err != nil {
		t.Fatal(err)
	}
	streamstest.Eventually(t, "the attacker is disconnected", func() bool {
		return i.listed(t, attacker.id) == 0
	})
	mustHaveNothingRetained(t, i)
	for _, nc := range i.conns.Shards {
		streamstest.Must(t, nc.Flush())
	}
	close(received)
	for msg := range received {
		t.Errorf("the cloud received %q on %s, want nothing", msg.Data, msg.Subject)
	}
}

func mustHaveNothingRetained(t *testing.T, i *installation) {
	t.Helper()
	for _, nc := range i.conns.Shards {
		js, err := jetstream.New(nc)
		streamstest.Must(t, err)
		stream, err := js.Stream(t.Context(), "$MQTT_rmsgs")
		streamstest.Must(t, err)
		if info, err := stream.Info(t.Context()); err != nil || info.State.Msgs > 0 || info.State.LastSeq > 0 {
			t.Errorf("retained messages: %+v, %v, want none", info, err)
		}
	}
}

// TestOversizedMessageCutsOnlyItsHub: a message beyond the broker's limit disconnects its hub and
// no other.
func TestOversizedMessageCutsOnlyItsHub(t *testing.T) {
	t.Parallel()
	i := start(t)
	large, other := i.newHub(t, 1), i.newHub(t, 2)
	client, lost := mustConnect(t, large.options())
	otherClient, _ := mustConnect(t, other.options())
	received, err := i.conns.Shard(other.id).SubscribeSync(streams.HelloSubject(other.id))
	streamstest.Must(t, err)
	client.Publish("hub/"+string(large.id)+"/events", 0, false, make([]byte, 2<<20))
	mustEnd(t, "a message of 2 MiB", lost)
	streamstest.Must(t, wait(
		t, otherClient.Publish("hub/"+string(other.id)+"/hello", 1, false, "still here"),
	))
	if _, err := received.NextMsg(testTimeout); err != nil {
		t.Fatal(err)
	}
	mustConnect(t, large.options())
}

// TestNATSPortIsNotForHubs: the port for NATS clients admits only the service's own users, whatever
// certificate a client has, and the port for hubs admits no NATS client.
func TestNATSPortIsNotForHubs(t *testing.T) {
	t.Parallel()
	i := start(t)
	h := i.newHub(t, 1)
	url := "nats://" + i.broker.NATSAddr()
	for what, options := range map[string][]nats.Option{
		"nothing":                      nil,
		"a hub's certificate":          {nats.Secure(h.tls())},
		"a hub's name as user":         {nats.UserInfo(string(h.id), secret)},
		"the service's user, guessing": {nats.UserInfo("cloud", "cloud")},
		"a token":                      {nats.Token(secret)},
	} {
		if nc, err := nats.Connect(url, append(options, nats.Timeout(testTimeout))...); err == nil {
			t.Errorf("%s: connected", what)
			nc.Close()
		}
	}
	if nc, err := nats.Connect(
		"tls://"+i.broker.MQTTAddr(), nats.Secure(h.tls()), nats.TLSHandshakeFirst(),
		nats.Timeout(time.Second),
	); err == nil {
		t.Error("a NATS client at the MQTT port: connected")
		nc.Close()
	}
}

// brokenDirectory cannot be read.
type brokenDirectory struct{ *directory.Service }

func (brokenDirectory) Hub(context.Context, domain.HubID) (domain.HubState, uint64, error) {
	return domain.HubState{}, 0, errors.New("no answer from the directory")
}

// TestUnreadableDirectoryRejects: hubs are rejected while the directory cannot be read, and
// admitted again afterwards.
func TestUnreadableDirectoryRejects(t *testing.T) {
	t.Parallel()
	i := start(t)
	h := i.newHub(t, 1)
	i.stopCallout()
	i.startCallout(t, brokenDirectory{})
	mustBeRejected(t, "a directory that cannot be read", h.options())
	i.stopCallout()
	i.startCallout(t, i.streams.Directory)
	mustConnect(t, h.options())
}

func certifiedBy(t *testing.T, a *identity.Authority, h *hub, id domain.HubID) *tls.Config {
	t.Helper()
	issued, err := a.IssueHub(id, h.key.Public())
	streamstest.Must(t, err)
	config := h.tls()
	config.Certificates = []tls.Certificate{
		{Certificate: [][]byte{parseCertificate(t, string(issued.PEM)).Raw}, PrivateKey: h.key},
	}
	return config
}

func selfSigned(t *testing.T, h *hub) *tls.Config {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: string(h.id)},
		NotAfter:     time.Now().Add(time.Hour),
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, h.key.Public(), h.key)
	streamstest.Must(t, err)
	config := h.tls()
	config.Certificates = []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: h.key}}
	return config
}
