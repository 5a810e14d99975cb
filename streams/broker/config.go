package broker

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/streams"
	"hubcloud/streams/diskspace"
)

// DefaultShards is how many shards an installation gets when nothing else is asked.
const DefaultShards = 16

// Config says how the broker runs.
type Config struct {
	// DataDir is the installation's data directory, made if it is absent: streams are under
	// <DataDir>/nats, the credentials in <DataDir>/nats-credentials.json.
	DataDir string
	// Shards is the number of shards. An installation is made with it (0: DefaultShards); later it
	// must be the same, or 0 for whatever it was.
	Shards int
	// NATSAddr is where the service's own commands connect, host:port; without TLS, so it belongs
	// on loopback. Port 0 picks one.
	NATSAddr string
	// MQTTAddr is where hubs connect, host:port; without a host, all addresses of the machine. Port
	// 0 picks one.
	MQTTAddr string
	// MQTTTLS must require and verify client certificates. Its GetConfigForClient is replaced.
	MQTTTLS *tls.Config
	// Connections is how many connections hubs and clients of the NATS listener may have, so that
	// files are left for the logs; one more is closed. 0 sets no bound.
	Connections int
	// SyncInterval is how often what was written is synced to disk; 0 syncs before every
	// acknowledgement.
	SyncInterval time.Duration
	// Space is the file system of DataDir. After the store has failed, the server is restarted when
	// there is room on it; nil looks for room by writing a small file.
	Space *diskspace.Guard
	// ExpectedHubs is how many hubs to expect when that is more than there are logs on disk. It
	// only matters to the warning about open files.
	ExpectedHubs int
	// Log gets the broker's own lines and, sifted, the NATS server's; nil is the default logger.
	Log *slog.Logger
	// Metrics gets the broker's metrics; nil registers none.
	Metrics prometheus.Registerer
}

// check says what is wrong with a configuration, as far as it can be known without the data.
func (c Config) check() error {
	switch {
	case c.DataDir == "":
		return errors.New("no data directory")
	case c.Shards < 0 || c.Shards > streams.MaxShards:
		return fmt.Errorf("shards is %d; 1 to %d are allowed", c.Shards, streams.MaxShards)
	case c.MQTTTLS == nil || c.MQTTTLS.ClientAuth != tls.RequireAndVerifyClientCert || c.MQTTTLS.ClientCAs == nil:
		return errors.New(
			"the MQTT listener needs TLS that requires and verifies client certificates",
		)
	case c.Connections < 0:
		return fmt.Errorf("connections is %d; 0 (no bound) or more is allowed", c.Connections)
	case c.SyncInterval < 0:
		return fmt.Errorf("sync interval is %v; 0 (always) or more is allowed", c.SyncInterval)
	}
	return nil
}

// listenAddress takes host:port apart as the NATS server wants it: -1 for a port of its choice.
// Without a host it listens on every address, of both families where the machine has both; the
// server by itself would leave IPv6 out.
func listenAddress(what, addr string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(addr)
	if err == nil {
		port, err = strconv.Atoi(text)
	}
	if err != nil || port < 0 || port > 65535 {
		return "", 0, fmt.Errorf("the %s listener's address %q is not host:port", what, addr)
	}
	if port == 0 {
		port = -1
	}
	if host == "" {
		host = wildcardHost()
	}
	return host, port, nil
}

// loopback says whether only this machine reaches an address.
func loopback(host string) bool {
	address := net.ParseIP(host)
	return host == "localhost" || address != nil && address.IsLoopback()
}

func wildcardHost() string {
	probe, err := net.Listen("tcp", ":0")
	if err != nil {
		return "0.0.0.0"
	}
	// an address that a listener has is well formed
	host, _, _ := net.SplitHostPort(probe.Addr().String())
	_ = probe.Close() // nobody connected to it
	return host
}
