// Package mqtttest runs a whole installation for hubs that connect by MQTT over TLS: a broker with
// an MQTT listener, the certificate authority, the auth callout, and on them the streams that
// installationtest opens.
package mqtttest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"testing"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"

	"hubcloud/domain"
	"hubcloud/hubbridge/identity"
	"hubcloud/streams"
	"hubcloud/streams/broker"
	"hubcloud/streams/installationtest"
	"hubcloud/streams/streamstest"
)

// Installation is an installation on a data directory that outlives restarts.
type Installation struct {
	*installationtest.Installation
	Dir       string
	Authority *identity.Authority
	Broker    *broker.Server
	// MQTTAddr is where hubs connect. It stays the same over restarts.
	MQTTAddr string

	shards      int
	config      installationtest.Config
	conns       *streams.Conns
	stopCallout func()
}

// Start starts an installation with that many shards, which ends with the test, and creates an
// organization in it.
func Start(t testing.TB, shards int, config installationtest.Config) *Installation {
	t.Helper()
	i := &Installation{Dir: t.TempDir(), MQTTAddr: "127.0.0.1:0", shards: shards, config: config}
	var err error
	if i.Authority, err = identity.OpenAuthority(identity.AuthorityConfig{
		Dir: i.Dir + "/ca", Logger: streamstest.Logger(),
	}); err != nil {
		t.Fatal(err)
	}
	i.Up(t)
	i.CreateOrganization(t)
	t.Cleanup(func() { i.Down(t) })
	return i
}

// Up starts the installation again after Down.
func (i *Installation) Up(t testing.TB) {
	t.Helper()
	ctx := context.Background()
	var err error
	if i.Broker, err = broker.Start(ctx, broker.Config{
		DataDir: i.Dir, Shards: i.shards, NATSAddr: "127.0.0.1:0", MQTTAddr: i.MQTTAddr,
		MQTTTLS: i.Authority.ServerTLS(), SyncInterval: time.Minute, Logger: streamstest.Logger(),
	}); err != nil {
		t.Fatal(err)
	}
	i.MQTTAddr = i.Broker.MQTTAddr()
	if i.conns, err = i.Broker.Connect(ctx); err != nil {
		t.Fatal(err)
	}
	opened := installationtest.Open(t, i.conns, i.config)
	if i.Installation != nil {
		opened.OrgID, opened.SiteID = i.OrgID, i.SiteID
	}
	i.Installation = opened
	callout, err := identity.NewCallout(identity.CalloutConfig{
		Conns: i.Conns, Credentials: i.Broker.Credentials(), Directory: i.Directory,
		Logger: streamstest.Logger(),
	})
	streamstest.Must(t, err)
	i.stopCallout = streamstest.Run(t, "auth callout", callout.Run)
}

// Down stops the installation, the broker last.
func (i *Installation) Down(t testing.TB) {
	t.Helper()
	i.stopCallout()
	i.Close()
	i.conns.Close()
	if err := i.Broker.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// IssueHub issues a certificate to a hub of the inventory, and returns the configuration of the
// hub's connections.
func (i *Installation) IssueHub(t testing.TB, hub domain.HubID) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	streamstest.Must(t, err)
	issued, err := i.Authority.IssueHub(hub, key.Public())
	streamstest.Must(t, err)
	state, _, err := i.Directory.Hub(t.Context(), hub)
	streamstest.Must(t, err)
	if err := i.Directory.IssueCertificate(t.Context(), installationtest.Operator, hub, domain.IssueCertificate{
		Fingerprint: issued.Fingerprint, ExpiresAt: issued.ExpiresAt,
		SecretHash: state.SecretHash,
	}); err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(i.Authority.CAPEM())
	block, _ := pem.Decode(issued.PEM)
	return &tls.Config{
		RootCAs: pool, ServerName: "localhost", MinVersion: tls.VersionTLS12,
		Certificates: []tls.Certificate{{Certificate: [][]byte{block.Bytes}, PrivateKey: key}},
	}
}

// ClientOptions returns the MQTT options of a hub that follows the protocol and does not reconnect
// by itself.
func (i *Installation) ClientOptions(hub domain.HubID, config *tls.Config) *mqtt.ClientOptions {
	return mqtt.NewClientOptions().
		AddBroker("ssl://" + i.MQTTAddr).
		SetClientID(string(hub)).
		SetCleanSession(true).
		SetTLSConfig(config).
		SetAutoReconnect(false).
		SetConnectRetry(false).
		SetConnectTimeout(time.Minute).
		SetProtocolVersion(4).
		SetOrderMatters(false)
}
