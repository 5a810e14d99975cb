// Package hubbridge connects hubs to the cloud. A Bridge stores the events that hubs send, keeps
// track of which hubs are connected, and acknowledges what is stored.
//
// Hubs are divided into shards, each with its own account at the broker, and the shards into groups
// that share a journal. At any time one replica holds the lease of a group and serves it: it writes
// the group's journal and handles the messages of the group's hubs.
//
// # Packages
//
//	protocol     defines the messages between hubs and the cloud
//	codec        decodes hellos, events and responses; encodes acks
//	lease        divides the groups of shards among the replicas
//	presence     reads connections from the broker; holds the presence of all hubs in memory
//	ingest       stores events and presence changes in the hubs' event logs, exactly once;
//	             keeps what hubs do wrong, for the pages of their owners
//	commands     calls the methods of hubs, from any replica, and sends commands, each run once
//	statelog     asks hubs for their devices, and keeps the state of the devices in the hubs' logs
//	identity     issues certificates to hubs and authenticates their connections
//	kit          is the device side: hub, a library for hubs; virtualhub, a hub in software that
//	             stands on it, or many as a load; check, which checks a hub against the protocol
//
// # The life of a group
//
//  1. The lease is acquired. lease.Keeper calls the bridge, which opens the group's journal for
//     writing and then runs an ingest.Shard and a presence.Watcher for each shard until the lease
//     ends.
//  2. Both subscribe. Then the watcher compares the broker's list of connections with the presence
//     bucket. A connection that begins or ends between subscription and comparison appears in one
//     of the two.
//  3. When the group becomes another replica's share, or the bridge stops, its shards unsubscribe,
//     handle the messages already received, which takes a few seconds at most, and write the ingest
//     checkpoints. Then the writer ends and the lease is released.
//  4. When the lease is lost, the group stops at once, and acks that are not sent yet are dropped:
//     the next holder may already have acknowledged more.
//
// # Two replicas that serve a group
//
// While the lease cannot be renewed, a replica serves its groups on (lease.Keeper.RunFenced), and
// another one may have acquired them. That is safe because the journal decides, and not the time:
//
//   - One writer. A writer is opened only while the lease is certainly held, and its first commit
//     takes the sequence that the former writer expects to be free. So a commit is stored only while
//     nobody else has opened a writer. The former holder finds that out by its next commit, or by
//     following the journal, and stops; it opens no writer without the lease.
//   - Acks. An ack says what is stored, and that remains true whoever sends it; a hub ignores a lower
//     one than it had on the same connection. Acks that wait in a connection that is cut are
//     discarded within three seconds, and another replica takes over after four.
//   - One status. A change of a hub's connection is a record of the journal first, and only then in
//     the presence bucket, on condition of the former revision. What the journal does not fence waits
//     until the lease is certainly held: the presence and the checkpoints of hubs without an
//     organization, resets, and the names of devices that were removed.
//   - Reads. A replica answers pages from memory only while the lease is certainly held, and asks the
//     journal's leader otherwise.
//
// A process that was suspended does none of this before it has tried to renew the lease.
//
// # Failure
//
// A message that could not be stored gets no ack, and its hub sends it again, to the same replica
// or to the next holder of the shard. Every append names the sequence that it expects, so of two
// replicas that both believe that they hold a shard at most one can write. An error of the
// bridge's own parts ends Bridge.Run.
package hubbridge
