// Package broker runs the service's NATS server inside the process: the accounts SYS, CLOUD, TAP,
// TAP00… and SHARD00…, streams on disk, an MQTT listener for hubs and a NATS listener for the
// service's own commands and for taps. A Layout says how the accounts hang together, for this
// server and for servers of one's own alike.
//
// # Promises
//
//   - The number of shards is fixed when the installation is made and recorded beside the data.
//     Another number later is refused: hub logs would be looked for where they are not.
//   - Credentials are made once and kept in <data>/nats-credentials.json, readable by the service's
//     user only. Whoever can read that file is the service; nobody else gets in but taps, and no
//     password opens the MQTT listener.
//   - Who logs in to an account of a tap hears the feeds of all hub logs and reads the logs, and
//     can do nothing else: nothing else is exported to that account, and a user's permissions leave
//     out the rest once more.
//   - Hubs connect with TLS and a certificate of the installation's authority, and each connection
//     is put to the auth callout. While nobody answers the callout (the service is starting), their
//     handshakes wait a few seconds instead of being refused: to a hub, a refusal means that its
//     certificate is no good.
//   - What the server acknowledged is on disk when it says so, or, with a SyncInterval, may be lost
//     in a power cut but not in a crash of the process. Any instant is good for a kill -9.
//   - Nothing that hubs send is retained: there are no retained messages on the hub link, and a hub
//     must not fill the disk with them.
//
// Start and Close own every goroutine.
package broker
