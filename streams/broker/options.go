package broker

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"hubcloud/streams"
)

const (
	// maxConnections is used when Config.Connections is 0. Memory and open files run out earlier.
	maxConnections = 1 << 20
	// ownConnections is an allowance for the connections of the service and of operators' commands,
	// beside two per shard. Connections within the process do not use files.
	ownConnections = 64
	// durableConnections is the limit of connections of the durable server. Each connection to all
	// accounts has two.
	durableConnections = 256
	// DurableSuffix is appended to the name of the server for hubs.
	DurableSuffix = "-durable"
	// tlsTimeoutSeconds (handshake), connectTimeoutSeconds (CONNECT packet) and sessionTimeout
	// (storing the MQTT session) allow for thousands of hubs that reconnect at the same time. A hub
	// that runs into a timeout tries again and makes the queue longer.
	tlsTimeoutSeconds     = 20
	connectTimeoutSeconds = 10
	sessionTimeout        = 20 * time.Second
	// memoryStorage is the limit of streams in memory. The service has none, but the server
	// requires a limit.
	memoryStorage = 256 << 20
)

// mqttRules configures QoS 2 in the block mqtt of a NATS server's configuration. Publishing at QoS
// 2 is rejected: the server stores each message until the client releases it, so a client that
// never does could fill the disk. A subscription at QoS 2 gets QoS 1.
const mqttRules = "reject_qos2_publish: true, downgrade_qos2_subscribe: true"

// serverOptions are the options of the embedded broker's two servers.
type serverOptions struct {
	hubs, durable *server.Options
}

// newServerOptions returns the options of the servers. The durable server listens on durableAddr.
func newServerOptions(
	cfg Config, durableAddr string, made installation, c streams.Credentials, maxStore int64,
) (opts serverOptions, err error) {
	layout, err := NewLayout(c)
	if err != nil {
		return opts, err
	}
	hubs, durable := layout.split()
	store := filepath.Join(cfg.DataDir, storeFolder)
	opts.hubs, err = commonOptions(
		hubs.Text()+"mqtt { "+mqttRules+" }", cfg.NATSAddr, store, maxStore, cfg.ViewSyncInterval,
	)
	if err != nil {
		return opts, err
	}
	opts.hubs.ServerName, opts.hubs.MaxConn = made.ServerName, cfg.maxConnections(made.Shards)
	mqtt := &opts.hubs.MQTT
	if mqtt.Host, mqtt.Port, err = listenAddress("MQTT", cfg.MQTTAddr); err != nil {
		return opts, err
	}
	mqtt.AuthTimeout, mqtt.TLSTimeout = connectTimeoutSeconds, tlsTimeoutSeconds
	mqtt.JSAPITimeout = sessionTimeout
	opts.durable, err = commonOptions(
		durable.Text(), durableAddr, filepath.Join(store, durableFolder), maxStore,
		cfg.SyncInterval,
	)
	if err != nil {
		return opts, err
	}
	opts.durable.ServerName = made.ServerName + DurableSuffix
	opts.durable.MaxConn = durableConnections
	return opts, nil
}

// commonOptions returns what both servers have in common, with the accounts of a configuration.
func commonOptions(
	accounts, addr, store string, maxStore int64, syncInterval time.Duration,
) (*server.Options, error) {
	opts := &server.Options{}
	err := opts.ProcessConfigString(execute("limits", nil) + "\n" + accounts)
	if err != nil {
		return nil, fmt.Errorf("configure the accounts: %w", err)
	}
	if opts.Host, opts.Port, err = listenAddress("NATS", addr); err != nil {
		return nil, err
	}
	opts.NoSigs, opts.NoLog, opts.DisableJetStreamBanner = true, true, true
	// On a busy machine a login can take longer than the time to the server's first ping, which
	// clients do not expect during a login.
	opts.DisableShortFirstPing = true

	opts.JetStream, opts.StoreDir = true, store
	opts.JetStreamMaxMemory, opts.JetStreamMaxStore = memoryStorage, maxStore
	opts.SyncAlways, opts.SyncInterval = syncInterval == 0, syncInterval
	return opts, nil
}

// maxConnections returns the server's limit of connections, including the service's own.
func (c Config) maxConnections(shards int) int {
	if c.Connections == 0 {
		return maxConnections
	}
	return min(maxConnections, c.Connections+2*shards+ownConnections)
}
