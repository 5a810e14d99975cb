package broker

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/streams"
	"hubcloud/streams/disk"
)

// DefaultShards is the default number of shards of a new installation with one server,
// ClusterShards with several: there each shard costs every server the heartbeats of six Raft
// groups, five of them for the streams of MQTT sessions.
const (
	DefaultShards = 16
	ClusterShards = 8
)

// Config configures a Server.
type Config struct {
	// DataDir is the installation's data directory. It is created if it does not exist. Streams are
	// in <DataDir>/nats and, of the durable server, in <DataDir>/nats/durable, credentials in
	// <DataDir>/nats-credentials.json.
	DataDir string
	// Shards is the number of shards. Defaults to the installation's, and for a new installation to
	// DefaultShards. For an existing installation no other value is allowed.
	Shards int
	// NATSAddr is the address (host:port) for the service's commands. The listener has no TLS, so
	// it should be on loopback. Port 0 picks a free port.
	NATSAddr string
	// MQTTAddr is the address (host:port) for hubs. Without a host it is all addresses of the
	// machine. Port 0 picks a free port.
	MQTTAddr string
	// MQTTTLS is the TLS configuration of the MQTT listener. It must require and verify client
	// certificates. Its GetConfigForClient
	// is called once the service is ready.
	MQTTTLS *tls.Config
	// Pause returns how long the TLS handshake of a hub at an address must wait. Nil means no time.
	Pause func(netip.Addr) time.Duration
	// Connections limits the connections of hubs and of clients of the NATS listener, so that open
	// files are left for hub logs. Further connections are closed. Zero means no limit.
	Connections int
	// SyncInterval is the interval at which writes are synced to disk. Zero syncs every write
	// before it is acknowledged.
	SyncInterval time.Duration
	// ViewSyncInterval is the SyncInterval of the server that has the hub logs. Defaults to
	// SyncInterval.
	ViewSyncInterval time.Duration
	// Space watches the free space of DataDir's file system. After a failed write the server is
	// restarted once there is space. Without it, space is tested by writing a small file.
	Space *disk.Guard
	// ExpectedHubs is the expected number of hubs, if greater than the number of hub logs on disk.
	// It is used only for the warning about the limit of open files.
	ExpectedHubs int
	// Logger receives the log of the broker and, filtered, the log of the NATS server. Defaults to
	// slog.Default().
	Logger *slog.Logger
	// Metrics registers the broker's metrics. Without it none are registered.
	Metrics prometheus.Registerer
}

// WithDefaults returns a copy of c with defaults for unset fields. The default of Shards depends on
// the installation and is not set here.
func (c Config) WithDefaults() Config {
	c.Logger = cmp.Or(c.Logger, slog.Default())
	c.ViewSyncInterval = cmp.Or(c.ViewSyncInterval, c.SyncInterval)
	return c
}

// Validate returns an error that names the first field whose value is not allowed.
func (c Config) Validate() error {
	switch {
	case c.DataDir == "":
		return errors.New("data directory: must be set")
	case c.Shards < 0 || c.Shards > streams.MaxShards:
		return fmt.Errorf("shards: must be 1 to %d, got %d", streams.MaxShards, c.Shards)
	case c.MQTTTLS == nil, c.MQTTTLS.ClientAuth != tls.RequireAndVerifyClientCert,
		c.MQTTTLS.ClientCAs == nil:
		return errors.New("MQTT TLS: must require and verify client certificates")
	case c.Connections < 0:
		return fmt.Errorf("connections: must not be negative, got %d", c.Connections)
	case c.SyncInterval < 0:
		return fmt.Errorf("sync interval: must not be negative, got %v", c.SyncInterval)
	case c.ViewSyncInterval < 0:
		return fmt.Errorf("view sync interval: must not be negative, got %v", c.ViewSyncInterval)
	}
	return nil
}

// listenAddress splits host:port into the options of the NATS server, where port -1 picks a free
// port. An empty host becomes the wildcard address for IPv4 and IPv6 if the machine has both; the
// server's own default is IPv4 only.
func listenAddress(what, addr string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(addr)
	if err == nil {
		port, err = strconv.Atoi(text)
	}
	if err != nil || port < 0 || port > 65535 {
		return "", 0, fmt.Errorf("%s address: must be host:port, got %q", what, addr)
	}
	if port == 0 {
		port = -1
	}
	if host == "" {
		host = wildcardHost()
	}
	return host, port, nil
}

// loopback reports whether host can be reached from this machine only.
func loopback(host string) bool {
	address := net.ParseIP(host)
	return host == "localhost" || address != nil && address.IsLoopback()
}

// wildcardHost returns "::" if the machine has IPv6, and "0.0.0.0" otherwise.
func wildcardHost() string {
	probe, err := net.Listen("tcp", ":0")
	if err != nil {
		return "0.0.0.0"
	}
	host, _, _ := net.SplitHostPort(probe.Addr().String()) // a listener's address is valid
	_ = probe.Close()                                      // it was only a probe
	return host
}

// anyPort is a free port of the loopback interface.
const anyPort = "127.0.0.1:0"

// durableAddr returns the address on which the durable server listens: the address of the last run,
// whose URL is given, if its port is free, so that connections from elsewhere outlive a restart of
// the service. Otherwise it is anyPort.
func durableAddr(former string) string {
	u, err := url.Parse(former)
	if err != nil || !loopback(u.Hostname()) || !free(u.Host) {
		return anyPort
	}
	return u.Host
}

// free reports whether a server can listen on an address.
func free(addr string) bool {
	probe, err := net.Listen("tcp", addr)
	if err != nil {
		return false
	}
	_ = probe.Close() // it was only a probe
	return true
}
