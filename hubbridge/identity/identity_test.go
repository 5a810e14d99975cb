package identity_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"
	"go.uber.org/goleak"

	"hubcloud/domain"
	"hubcloud/hubbridge/identity"
	"hubcloud/hubbridge/protocol"
	"hubcloud/streams"
	"hubcloud/streams/broker"
	"hubcloud/streams/directory"
	"hubcloud/streams/installationtest"
	"hubcloud/streams/streamstest"
	"hubcloud/streams/tap"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, streamstest.Leaks()...)
}

const (
	shards      = 2
	secret      = "a-secret-of-the-hubs-in-these-tests-0123456"
	testTimeout = time.Minute
)

// installation is a broker with the certificate authority, enrolment and auth callout, on a data
// directory that outlives restarts.
type installation struct {
	dir        string
	authority  *identity.Authority
	rejections *identity.Rejections

	broker       *broker.Server
	conns        *streams.Conns
	enrolment    *identity.Enrolment
	disconnector *identity.Disconnector
	streams      *installationtest.Installation
	taps         *tap.Users
	// stopCallout ends the auth callout and waits for it.
	stopCallout func()
}

// start starts an installation that ends with the test.
func start(t testing.TB) *installation {
	t.Helper()
	i := &installation{dir: t.TempDir(), rejections: identity.NewRejections(nil, nil)}
	var err error
	if i.authority, err = identity.OpenAuthority(identity.AuthorityConfig{
		Dir: i.dir + "/ca", Logger: streamstest.Logger(),
	}); err != nil {
		t.Fatal(err)
	}
	i.up(t, "127.0.0.1:0")
	t.Cleanup(func() { i.down(t) })
	return i
}

// up starts the broker and its services; mqttAddr is where hubs connect.
func (i *installation) up(t testing.TB, mqttAddr string) {
	t.Helper()
	ctx := context.Background()
	var err error
	i.broker, err = broker.Start(ctx, broker.Config{
		DataDir: i.dir, Shards: shards, NATSAddr: "127.0.0.1:0", MQTTAddr: mqttAddr,
		MQTTTLS: i.rejections.Guard(i.authority.ServerTLS()), Pause: i.rejections.Pause,
		Logger: streamstest.Logger(),
	})
	streamstest.Must(t, err)
	if i.conns, err = i.broker.Connect(ctx); err != nil {
		t.Fatal(err)
	}
	i.disconnector = identity.NewDisconnector(i.conns, streamstest.Logger(), nil)
	i.streams = installationtest.Open(t, i.conns, installationtest.Config{
		Directory: func(cfg *directory.ServiceConfig) { cfg.Connections = i.disconnector },
	})
	i.enrolment, err = identity.NewEnrolment(identity.EnrolmentConfig{
		Authority: i.authority, Directory: i.streams.Directory,
		Broker: func() string { return "mqtts://" + i.broker.MQTTAddr() },
		Logger: streamstest.Logger(),
	})
	streamstest.Must(t, err)
	i.taps = tap.NewUsers(i.conns.Cloud, i.streams.Buckets.Installation)
	i.startCallout(t, i.streams.Directory)
}

// down stops everything that up started.
func (i *installation) down(t testing.TB) {
	t.Helper()
	i.broker.RejectHubs(context.Background())
	i.disconnector.Close()
	i.stopCallout()
	i.streams.Close()
	i.conns.Close()
	if err := i.broker.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

func (i *installation) startCallout(t testing.TB, d identity.Directory) {
	t.Helper()
	callout, err := identity.NewCallout(identity.CalloutConfig{
		Conns: i.conns, Credentials: i.broker.Credentials(), Taps: i.taps,
		Directory: d, Rejections: i.rejections, Logger: streamstest.Logger(),
	})
	streamstest.Must(t, err)
	i.stopCallout = streamstest.Run(t, "callout", callout.Run)
}

// hub is a hub of the inventory with a certificate.
type hub struct {
	id          domain.HubID
	key         crypto.Signer
	certificate *x509.Certificate
	broker      string
	ca          *x509.CertPool
}

// register puts a hub into the inventory.
func (i *installation) register(t testing.TB, id domain.HubID) {
	t.Helper()
	hash := sha256.Sum256([]byte(secret))
	streamstest.Must(t, i.streams.Directory.RegisterHub(
		t.Context(), installationtest.Operator, id, hash[:],
	))
}

// enrol gets a registered hub a certificate.
func (i *installation) enrol(t testing.TB, id domain.HubID) *hub {
	t.Helper()
	key := newKey(t)
	answer, err := i.enrolment.Issue(
		t.Context(),
		protocol.CertificateRequest{Serial: id.Serial(), Secret: secret, CSR: newCSR(t, key)},
	)
	streamstest.Must(t, err)
	h := &hub{
		id:          id,
		key:         key,
		certificate: parseCertificate(t, answer.Certificate),
		broker:      answer.Broker,
		ca:          x509.NewCertPool(),
	}
	if !h.ca.AppendCertsFromPEM([]byte(answer.CA)) {
		t.Fatal("the answer's ca is not a PEM certificate")
	}
	return h
}

func (i *installation) newHub(t testing.TB, n int) *hub {
	t.Helper()
	id := hubID(n)
	i.register(t, id)
	return i.enrol(t, id)
}

func hubID(n int) domain.HubID { return domain.HubID(fmt.Sprintf("hub-test-0000-%04d", n)) }

func (h *hub) tls() *tls.Config {
	return &tls.Config{
		RootCAs: h.ca, ServerName: "localhost", MinVersion: tls.VersionTLS12,
		Certificates: []tls.Certificate{
			{Certificate: [][]byte{h.certificate.Raw}, PrivateKey: h.key},
		},
	}
}

func (h *hub) fingerprint() string {
	return fmt.Sprintf("%x", sha256.Sum256(h.certificate.Raw))
}

// options returns the MQTT options of a correct hub that does not reconnect.
func (h *hub) options() *mqtt.ClientOptions {
	return mqtt.NewClientOptions().
		AddBroker(strings.Replace(h.broker, "mqtts://", "ssl://", 1)).
		SetClientID(string(h.id)).
		SetCleanSession(true).
		SetTLSConfig(h.tls()).
		SetAutoReconnect(false).
		SetConnectRetry(false).
		SetConnectTimeout(testTimeout).
		SetProtocolVersion(4).
		SetOrderMatters(false)
}

// connect connects a client until the test ends. lost is closed when the connection breaks.
func connect(
	t testing.TB, options *mqtt.ClientOptions,
) (client mqtt.Client, lost <-chan struct{}, err error) {
	t.Helper()
	ended := make(chan struct{})
	var once sync.Once
	client = mqtt.NewClient(
		options.SetConnectionLostHandler(
			func(mqtt.Client, error) { once.Do(func() { close(ended) }) },
		),
	)
	if err := wait(t, client.Connect()); err != nil {
		return nil, nil, err
	}
	t.Cleanup(func() { client.Disconnect(0) })
	return client, ended, nil
}

func mustConnect(t testing.TB, options *mqtt.ClientOptions) (mqtt.Client, <-chan struct{}) {
	t.Helper()
	client, lost, err := connect(t, options)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	return client, lost
}

func mustBeRejected(t testing.TB, what string, options *mqtt.ClientOptions) {
	t.Helper()
	if client, _, err := connect(t, options); err == nil {
		t.Errorf("%s: connected", what)
		client.Disconnect(0)
	}
}

func wait(t testing.TB, token mqtt.Token) error {
	t.Helper()
	if !token.WaitTimeout(testTimeout) {
		t.Fatal("the MQTT client has not finished after a minute")
	}
	return token.Error()
}

func mustEnd(t testing.TB, what string, lost <-chan struct{}) {
	t.Helper()
	select {
	case <-lost:
	case <-time.After(testTimeout):
		t.Fatalf("%s: still connected", what)
	}
}

func newKey(t testing.TB) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	streamstest.Must(t, err)
	return key
}

func newCSR(t testing.TB, key crypto.Signer) string {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	streamstest.Must(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
}

func parseCertificate(t testing.TB, text string) *x509.Certificate {
	t.Helper()
	block, rest := pem.Decode([]byte(text))
	if block == nil || len(rest) > 0 {
		t.Fatalf("not one PEM block: %q", text)
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	streamstest.Must(t, err)
	return certificate
}
