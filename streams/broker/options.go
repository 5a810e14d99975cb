package broker

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"hubcloud/streams"
)

const (
	// maxPayload bounds one message, of anyone. A hub that sends more is disconnected, and would
	// send it again for ever. The link's own limit is an eighth of it: up to here a message that is
	// too big is dropped, and the hub gets its ack.
	maxPayload = 2 << 20
	// maxPending is how much may wait to be written to one connection. The service's own
	// connections carry the traffic of thousands of hubs.
	maxPending = 256 << 20
	// maxConnections stands for Config.Connections where nothing is said: memory and open files end
	// first.
	maxConnections = 1 << 20
	// ownConnections is about how many connections the service has to the broker in its process
	// beside two for each shard, operators' commands among them. They are no files.
	ownConnections = 64
	// maxClosedConnections is how many ended connections the server remembers for questions that
	// nobody asks here.
	maxClosedConnections = 256
	// tlsTimeoutSeconds, for a handshake, connectTimeoutSeconds, for the CONNECT after it, and
	// sessionTimeout, for the session to be on disk, leave room for thousands of hubs that come
	// back at once: each waits for its turn, and one that is cut off comes again and makes the
	// queue longer.
	tlsTimeoutSeconds     = 20
	connectTimeoutSeconds = 10
	sessionTimeout        = 20 * time.Second
	// calloutTimeoutSeconds is how long the server waits for an answer of the auth callout. A
	// shutdown waits for that too.
	calloutTimeoutSeconds = 5
	// memoryStorage bounds streams in memory. The service has none; the server wants a number.
	memoryStorage = 256 << 20
)

// mqttRules is what MQTT clients may do with QoS 2, as a NATS server's configuration has it in the
// block mqtt. A publish at QoS 2 is refused because the server keeps each until the client releases
// it, and a client that never does fills the disk; a subscription at QoS 2 gets QoS 1.
const mqttRules = "reject_qos2_publish: true, downgrade_qos2_subscribe: true"

// serverOptions gives the NATS server's options.
func serverOptions(
	cfg Config, settled installation, c streams.Credentials, maxStore int64,
) (*server.Options, error) {
	layout, err := NewLayout(c)
	if err != nil {
		return nil, err
	}
	opts := &server.Options{}
	if err := opts.ProcessConfigString(layout.Text() + "mqtt { " + mqttRules + " }"); err != nil {
		return nil, fmt.Errorf("configure the accounts: %w", err)
	}
	if opts.Host, opts.Port, err = listenAddress("NATS", cfg.NATSAddr); err != nil {
		return nil, err
	}
	if opts.MQTT.Host, opts.MQTT.Port, err = listenAddress("MQTT", cfg.MQTTAddr); err != nil {
		return nil, err
	}
	opts.ServerName = settled.ServerName
	opts.NoSigs, opts.NoLog, opts.DisableJetStreamBanner = true, true, true
	opts.MaxPayload, opts.MaxPending = maxPayload, maxPending
	opts.MaxConn, opts.MaxClosedClients = cfg.maxConnections(settled.Shards), maxClosedConnections
	opts.MQTT.AuthTimeout, opts.MQTT.TLSTimeout = connectTimeoutSeconds, tlsTimeoutSeconds
	opts.MQTT.JSAPITimeout = sessionTimeout
	// A busy machine can take longer over a login than the server's first ping, which clients do
	// not expect in the midst of it.
	opts.DisableShortFirstPing = true

	opts.JetStream = true
	opts.StoreDir = filepath.Join(cfg.DataDir, storeFolder)
	opts.JetStreamMaxMemory, opts.JetStreamMaxStore = memoryStorage, maxStore
	opts.SyncAlways, opts.SyncInterval = cfg.SyncInterval == 0, cfg.SyncInterval
	return opts, nil
}

// maxConnections returns how many connections the server takes, the service's own among them.
func (c Config) maxConnections(shards int) int {
	if c.Connections == 0 {
		return maxConnections
	}
	return min(maxConnections, c.Connections+2*shards+ownConnections)
}
