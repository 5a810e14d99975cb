// Package streams is how the service reaches the broker, a NATS server: the names of accounts,
// streams and subjects, the connections to all accounts, and the declarations of streams and
// key-value buckets. Its folders hold the rest:
//
//   - jsapi speaks the JetStream API for all others: reads, appends, buckets, retries, errors.
//   - replicas is what the replicas of the service know of each other and of the broker.
//   - directory is the log of who owns what, hublog the logs of what happened at each hub.
//   - outbox queues mails; signin keeps the portal's sessions, keyuse the last use of API keys.
//   - tap streams the events of all hubs to analytics, and tapuser is its credentials.
//   - backup writes all of that into a folder, and restores it.
//   - broker is the embedded server, telemetry the trace and id of a request, which messages carry.
//
// # Accounts and shards
//
// The broker has the accounts SYS (its own events and requests), CLOUD (directory, buckets,
// messages between replicas), SHARD00, SHARD01, … (hub logs and the connections of hubs), and TAP,
// TAP00, … (programs that read hub logs from outside, and can do nothing else). A hub's shard
// follows from its id and the number of shards, which is fixed when an installation is made.
//
// # Promises
//
//   - Streams and buckets are declared as data, with a reason for each limit. A stream or bucket on
//     the broker that differs from its declaration is ErrIncompatible, with what differs. It is
//     never deleted or made again to fit.
//   - Connections reconnect for ever. They log what they report on the side, such as slow consumers
//     and lost connections.
//   - A FencedConn sends a message at once or not at all.
package streams
