// Package projections is everything PostgreSQL: the read models that lists and single reads are
// answered from, and what builds them from the directory and from the hubs' presence. It holds no
// truth of its own; losing the database loses nothing.
//
// # Read models
//
// Their tables are defined in sql/schema.sql and sql/indexes.sql, and stand in a schema that is
// named after the definition's hash. There are no migrations: a program with another definition
// builds a schema of its own beside the others, from the streams, and answers from it when it has
// caught up. The schema `hubcloud` records the schemas, what operators have stopped, and the
// installation that the database belongs to.
//
// # Building them anew
//
// A build folds the directory's events into rows, copies them into tables that have no keys and
// indexes yet, makes those, follows both streams, and takes the place of the read models in use in
// one transaction that renames both schemas (load.go, switch.go). A first start does that when
// there is much to build from, and so does `hubcloud projections rebuild`, which Control.Rebuild
// is; Control.Verify builds likewise and compares. The switch rests on this:
//
//   - The projector's transaction begins with its row of the table checkpoints, and whoever reads
//     several tables of one moment begins with that table too. The switch locks it first, so that
//     nobody is half in the one schema and half in the other.
//   - Everybody finds tables by the schema's name, which stays, and so do the channel of
//     notifications and the locks. PostgreSQL plans anew, after a rename, what was prepared before.
//   - While the table is locked the new read models take what the old ones have: whoever was told
//     that something is written finds it.
//   - Who builds holds an advisory lock, and switches on the connection that holds it. Its schema
//     has a name of its own: whatever becomes of a process that was cut off, it writes into nobody
//     else's, and the next build drops it.
//
// # Promises
//
//   - Each projection reads its stream in order from its checkpoint. Rows and checkpoint are
//     committed in one transaction, which fails when somebody else has moved the checkpoint: every
//     event is applied once, whoever races.
//   - One process at a time projects, the one that holds a lock in the database. Others stand by
//     and take over within a second of its end, and within 5 s of when it was last heard of: the
//     lock of a process that is stopped or cut off is ended by whoever stands by, and by the
//     server. Each projector has a term, which every transaction checks: what the one before has
//     not committed when the next takes over fails, and it stands by once it is back. Whoever
//     builds read models loses their lock likewise, and no session may be silent within a
//     transaction for more than 4 s.
//   - Nothing is passed over. An event that cannot be read or applied stops its projection exactly
//     there, with everything before it committed: that shows in Status, in Ready and in the metric,
//     with the event's sequence, type and error. It is tried again every 10 s. An operator can have
//     it step over the event, which is recorded in the directory's log, and heeded by every later
//     build. The other projection, and everything else, goes on. A database that is away is no such
//     event: it is waited for.
//   - Once Control.Stop has returned nothing more is written, by any process, until Control.Resume.
//   - Nothing is read from read models that have never been complete: ErrBuilding, which callers
//     see as service_unavailable.
//   - A read waits for a database that is away or restarts, for 15 s, and is then
//     service_unavailable.
//   - Store.WaitFor returns once the read models have a sequence of the directory, whichever
//     process projects. It cannot miss the moment: it listens first, then looks, and looks again
//     every second. When they stand still it says so at once.
//   - Every query is scoped by organization: what belongs to another one is not found.
//   - Access, what requests are let in by (keys, hubs, who is a member of what), is kept in memory
//     on every replica and does not need the database to be there. It is loaded from the read
//     models when they are, and follows the directory itself.
//
// Store owns one goroutine, which listens; it ends with Close. RunProjector and Access.Run own what
// they start, and wait for it.
package projections
