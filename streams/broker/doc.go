// Package broker runs the service's broker in the process: the accounts SYS, CLOUD, TAP, TAP00…
// and SHARD00…, streams on disk, an MQTT listener for hubs, and NATS listeners for the service's
// commands and for taps. A Layout describes the accounts and what they share, for this broker as
// for an external one.
//
// # Two servers
//
// The broker is two NATS servers, because the interval at which writes are synced belongs to a
// whole server. They start, stop and recover from a full disk together.
//
//   - The server for hubs has the listeners for hubs and taps, and the accounts of shards and taps
//     with the hub logs. It requests the auth callout in an account CLOUD without streams.
//   - The durable server has the account CLOUD: the directory, the buckets, and messages between
//     processes. It listens on loopback; Credentials.CloudURL has its address.
//
// Each has an account SYS of its own. External servers are one cluster with all accounts.
//
// The streams of the server for hubs are in <data>/nats/jetstream, the durable server's in
// <data>/nats/durable/jetstream.
//
// # Promises
//
//   - The number of shards is fixed when the installation is created and recorded beside the data.
//     A start with another number is rejected: it would look for hub logs in the wrong accounts.
//   - Credentials are generated once and stored in <data>/nats-credentials.json, readable only by
//     the service's user. They grant all rights of the service. Apart from them only taps can log
//     in, and no password is accepted on the MQTT listener.
//   - A user of a tap account can receive the feeds of all hub logs and read the logs, and nothing
//     else: only these are exported to the account, and the user's permissions allow only these.
//   - Hubs connect with TLS and a certificate of the installation's authority, and the auth callout
//     decides about each connection. While nothing answers the callout, as during a start, TLS
//     handshakes wait for a few seconds. A rejection would tell the hub that its certificate is
//     invalid.
//   - Acknowledged messages are on disk. With a SyncInterval (ViewSyncInterval for hub logs), a
//     power cut may lose them, but a crash of the process may not. The process can be killed at any
//     time.
//   - The MQTT listener keeps no retained messages, so hubs cannot fill the disk with them.
//
// Start and Close own all goroutines.
package broker
