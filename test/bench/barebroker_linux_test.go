package bench

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"hubcloud/domain"
	"hubcloud/streams"
)

const roleBroker = "broker"

// bareBrokerConfig configures a bare broker: a NATS server with the accounts and listeners of the
// service's broker.
type bareBrokerConfig struct {
	Dir    string // of the streams
	Shards int
	// Cluster has the addresses of the servers of a cluster for each other, and Member is the index of
	// this one; no addresses for a single server.
	Cluster []string
	Member  int
	// Unsynced leaves the interval of syncs at the broker's default, two minutes.
	Unsynced bool
	// Authority signs the certificates of the broker and of hubs, PEM; Certificate and Key are the
	// broker's own.
	Authority, Certificate, Key string
}

// password of every user of the bare broker. The user of an account has its name.
const password = "bench"

// bareBroker is the server in its own process.
type bareBroker struct {
	server *server.Server
	conns  *streams.Conns
}

func runBareBroker(config []byte, control *http.ServeMux) (bareReady, error) {
	var ready bareReady
	var cfg bareBrokerConfig
	if err := json.Unmarshal(config, &cfg); err != nil {
		return ready, err
	}
	opts, err := cfg.options()
	if err != nil {
		return ready, err
	}
	b := &bareBroker{}
	if b.server, err = server.NewServer(opts); err != nil {
		return ready, err
	}
	b.server.Start()
	if !b.server.ReadyForConnections(time.Minute) {
		return ready, errors.New("the server does not start")
	}
	credentials := streams.Credentials{
		URL:    b.server.ClientURL(),
		Shards: cfg.Shards,
		Users:  map[streams.Account]streams.User{},
	}
	for _, account := range cfg.accounts() {
		credentials.Users[account] = streams.User{User: string(account), Password: password}
	}
	if b.conns, err = streams.Connect(
		context.Background(), credentials, nats.InProcessServer(b.server),
	); err != nil {
		return ready, err
	}
	command(control, "/call", b.call)
	command(control, "/one-stream", b.oneStream)
	ready.NATS = strings.TrimPrefix(b.server.ClientURL(), "nats://")
	ready.MQTT = net.JoinHostPort("127.0.0.1", strconv.Itoa(opts.MQTT.Port))
	return ready, nil
}

func (c bareBrokerConfig) accounts() []streams.Account {
	all := []streams.Account{streams.AccountSys, streams.AccountCloud}
	for i := range c.Shards {
		all = append(all, streams.ShardAccount(i))
	}
	return all
}

func (c bareBrokerConfig) options() (*server.Options, error) {
	var text strings.Builder
	text.WriteString("system_account: SYS\naccounts {\n")
	for _, account := range c.accounts() {
		jetstream := "jetstream: enabled, "
		if account == streams.AccountSys {
			jetstream = ""
		}
		fmt.Fprintf(
			&text, "  %s { %susers: [{user: %q, password: %q}] }\n", account, jetstream, account,
			password,
		)
	}
	text.WriteString("}\n")
	opts := &server.Options{}
	if err := opts.ProcessConfigString(text.String()); err != nil {
		return nil, err
	}
	certificate, err := tls.X509KeyPair([]byte(c.Certificate), []byte(c.Key))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(c.Authority))
	opts.MQTT.Host, opts.MQTT.Port = "127.0.0.1", -1
	opts.MQTT.TLSConfig = &tls.Config{
		Certificates: []tls.Certificate{certificate},
		ClientCAs:    pool,
		ClientAuth:   tls.RequireAndVerifyClientCert,
		MinVersion:   tls.VersionTLS12,
	}
	opts.MQTT.TLSTimeout, opts.MQTT.AuthTimeout, opts.AuthTimeout = 20, 20, 20
	opts.ServerName = "bare"
	opts.Host, opts.Port = "127.0.0.1", -1
	opts.JetStream, opts.StoreDir = true, c.Dir
	opts.SyncAlways = !c.Unsynced
	if len(c.Cluster) > 0 {
		opts.ServerName = fmt.Sprint("bare", c.Member)
		opts.Cluster.Name = "bare"
		own, err := net.ResolveTCPAddr("tcp", c.Cluster[c.Member])
		if err != nil {
			return nil, err
		}
		opts.Cluster.Host, opts.Cluster.Port = own.IP.String(), own.Port
		opts.Routes = server.RoutesFromStr("nats://" + strings.Join(c.Cluster, ",nats://"))
	}
	opts.NoLog, opts.NoSigs = true, true
	opts.MaxPending = 256 << 20
	return opts, nil
}

func (b *bareBroker) shard(hub string) *nats.Conn { return b.conns.Shard(domain.HubID(hub)) }

type nothing struct{}
