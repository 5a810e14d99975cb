// Package streams is everything of NATS that the service's parts share: the names on the wire, how
// to reach the broker's accounts, the key-value buckets, the storing of messages with optimistic
// concurrency, and the barrier that tells when every replica has applied an event of the directory.
// Its rooms hold the rest: directory (who owns what), hublog (what happened at a hub), outbox
// (mails that wait for delivery), signin (who is signed in to the portal), keyuse (when API keys
// were used last), tap (the events of all hubs, for analytics), backup (all of that into a folder,
// and back), survey (how the broker is, for operators who ask), telemetry (the trace and the id of
// a request, which messages carry on) and broker (the embedded server).
//
// # Accounts and shards
//
// The broker has the accounts SYS (its own events and requests), CLOUD (directory, buckets, the
// service's own talk), SHARD00, SHARD01, … (hub logs and the hubs themselves) and TAP and TAP00…
// (who reads hub logs from outside, and can do nothing else). A hub's shard follows from its id and
// the number of shards, which an installation fixes when it is made. Callers name a hub and never a
// shard.
//
// # Promises
//
//   - Streams and buckets are declared as data, with a reason for each limit. What is found on the
//     broker and does not fit the declaration is refused with an error that says what differs;
//     nothing is ever deleted or made anew to fit.
//   - Store tells three outcomes apart: stored, not stored (among them ErrConflict), and ErrUnsure,
//     when the answer was lost. Only the caller knows how to find out in the third case; nothing is
//     sent twice behind its back.
//   - Connections reconnect for ever. What they report on the side (slow consumers, lost
//     connections) goes to the log.
//   - Barrier.Wait returns nil only when every replica that is alive has said that it applied the
//     event.
package streams
