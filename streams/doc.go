// Package streams connects the service to the broker, a NATS server. It has the names of accounts,
// streams and subjects, the connections to all accounts, and the declarations of streams and
// key-value buckets. Its folders have the rest:
//
//   - jsapi speaks the JetStream API for all others: reads, appends, buckets, retries, errors.
//   - replicas tells the replicas of the service which of them are alive and how current their
//     views are.
//   - directory is the event log of organizations, hubs and keys. feed has the event log of each hub,
//     and the feed of each organization with the readers that name themselves.
//   - journal appends to hub logs: it stores the records of many hubs in one write. views writes the
//     streams of the logs from it.
//   - once runs each request with an Idempotency-Key once.
//   - outbox queues mails; signin keeps the portal's sessions.
//   - tap streams the events of all hubs to analytics, and manages its credentials.
//   - backup writes all of this to a folder and restores it.
//   - broker is the embedded server; telemetry has the trace and id of a request.
//
// # Accounts and shards
//
// The broker has the accounts SYS (its own events and requests), CLOUD (journals, directory,
// buckets, messages between replicas), SHARD00, SHARD01, … (hub logs and the connections of hubs),
// and TAP, TAP00, … (external programs, which can only read hub logs). In the embedded broker,
// CLOUD is on a server of its own, which syncs every write. A hub's shard follows from its id and
// the number of shards, which is fixed when an installation is created, as is the number of
// journals: each has the hubs of a group of shards.
//
// # Promises
//
//   - A stream or bucket on the broker that differs from its declaration is ErrIncompatible, with a
//     list of the differences. It is never deleted or changed to fit.
//   - Connections reconnect until they are closed, and log lost connections and dropped messages.
//   - A FencedConn sends a message at once or not at all.
package streams
