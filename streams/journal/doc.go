// Package journal stores the records of hub logs, many hubs' records in one write. The journal is
// what is durable: the hubs' own streams are views that are written from it later.
//
// # Journals
//
// The shards are divided into groups. Each group has one journal, a stream in the account CLOUD,
// which a single server syncs once for each commit and a cluster replicates. One process at a time
// writes to it, the holder of the group's lease. Every process follows every journal.
//
// # Commits
//
// A Commit is one message of a journal. It holds up to MaxRecords records of many hubs, each with
// its sequence in its hub's log and its time. Both are the writer's, so that a view can be deleted
// and written again with the same cursors. The commits of a journal are a gapless sequence, of
// which only the oldest expire. Marshal has the format.
//
// For each of its hubs a commit has a Link to the hub's commit before it, so that the records of
// one hub can be read without those of the others. Every 256th commit of a hub is an anchor that
// the following ones link to as well: a reader steps over 256 commits at once, and needs a few
// hundred reads for any place of a log of a hundred thousand commits. So readers need no memory of
// where they have been.
//
// Beside events and commands, a log has states: records of what the hub's devices last reported,
// which the service keeps for itself (KindState). They have sequences like all other records, but
// no reader of the log sees them.
//
// # Promises
//
//   - What Writer.Commit returned without an error is durable, and stays where it is.
//   - A commit is stored once or not at all, also if answers are lost: it is sent on condition of
//     the journal's last sequence, and sent again until the commit at its place is known.
//   - After OpenWriter has returned, nothing of a former writer is stored: the empty commit with
//     which a term begins takes the sequence that the former writer expects to be free.
//   - Within a journal, the times of records grow strictly, across writers too. Writer.LastTime is
//     what the next record must be after, also if the clock was set back.
//   - The records of a hub rise by one. A writer rejects a record that does not continue the hub's
//     tip, so an index that is behind cannot damage a chain.
//   - A Follower delivers every commit once and in order, and only durable ones: the broker
//     publishes a commit on the feed once it is stored, and direct gets return stored ones.
//   - Expired commits are reported, never left out silently. The index then drops all tips, and a
//     hub's end is to be taken from its view, until the hub has a record again.
//
// # Index
//
// An Index has the end of each hub's log, as the Tip that the next commit of the hub continues. The
// process that writes applies each commit itself before it makes the next one; its follower's copy
// of the same commit is then ignored. Every five minutes, and when it stops to write, the process
// that writes saves the index to the stream JOURNAL_INDEX, so that a start reads only the commits
// since. A snapshot that does not fit the journal is not used: the journal is read from its oldest
// commit.
//
// # Starting a writer
//
//  1. LoadIndex, and run a Follower from the index's position on that applies commits to it.
//  2. With the lease: OpenWriter, then Follower.Sync. The index now has every commit.
//  3. For each commit: Writer.Commit, Index.Apply, Follower.Offer.
//
// The views of many hubs are repaired fastest by a second Follower from the last commit that all
// views are known to have: a Reader walks along the commits of one hub.
//
// # Goroutines
//
// Follower.Run starts goroutines and waits for them. Nothing else starts any.
//
// # Failure
//
// While the broker does not answer, followers wait and writers ask again for 15 s. A Writer whose
// last commit has an unknown outcome, or that was fenced, fails every further call; the lease's
// holder opens another. A full disk or a missing leader leaves the writer usable. A Follower ends
// with ErrUnreadable at a message that is not a commit, and with ErrBeyondEnd if the journal has
// lost commits that were read. Its process must then start again.
//
// # Memory
//
// The queue of a follower is bounded by 32 MiB, the cache of readers by Config.CacheBytes, and what
// Reader.Read returns by its caller. An index takes about 120 bytes a hub.
package journal
