// Package broker runs the service's NATS server in the process: the accounts SYS, CLOUD, TAP,
// TAP00… and SHARD00…, streams on disk, an MQTT listener for hubs, and a NATS listener for the
// service's commands and for taps. A Layout describes the accounts and what they share, for this
// server as for an external one.
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
//   - Acknowledged messages are on disk. With a SyncInterval, a power cut may lose them, but a
//     crash of the process may not. The process can be killed at any time.
//   - The MQTT listener keeps no retained messages, so hubs cannot fill the disk with them.
//
// Start and Close own all goroutines.
package broker
