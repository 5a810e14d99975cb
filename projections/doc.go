// Package projections is everything PostgreSQL: the read models that lists and single reads are answered from, and what builds
// them from the directory and from the hubs' presence. It holds no truth of its own; losing the database loses nothing.
//
// # Read models
//
// Their tables are defined in sql/schema.sql and stand in a schema that is named after the definition's hash. There are no
// migrations: a program with another definition builds a schema of its own beside the others, from the streams, and is ready when
// it has caught up. The schema `hubcloud` records the schemas, and the installation that the database belongs to.
//
// # Promises
//
//   - Each projection reads its stream in order from its checkpoint. Rows and checkpoint are committed in one transaction, which
//     fails when somebody else has moved the checkpoint: every event is applied once, whoever races.
//   - One process at a time projects, the one that holds a lock in the database. Others stand by and take over within some two
//     seconds of its end.
//   - Nothing is passed over. An event that cannot be read or applied stops its projection exactly there, with everything before
//     it committed: that shows in Status, in Ready and in the metric, with the event's sequence, type and error. It is tried again
//     every 10 s. The other projection, and everything else, goes on. A database that is away is no such event: it is waited for.
//   - Store.WaitFor returns once the read models have a sequence of the directory, whichever process projects. It cannot miss the
//     moment: it listens first, then looks, and looks again every second.
//   - Every query is scoped by organization: what belongs to another one is not found.
//   - Access, what requests are let in by (keys, hubs, who is a member of what), is kept in memory on every replica and does not need the database to be there. It is
//     loaded from the read models when they are, and follows the directory itself.
//
// Store owns one goroutine, which listens; it ends with Close. RunProjector and Access.Run own what they start, and wait for it.
package projections
