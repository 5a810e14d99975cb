// Package journal appends to the event logs of hubs, many hubs' records in one write, and reports
// what is stored. The journal is what is durable: the hubs' own streams are views that are written
// from it later (package views).
//
// # Journals
//
// The shards are divided into groups. Each group has one journal, a stream in the account CLOUD,
// which a single server syncs once for each commit and a cluster replicates. One process at a time
// writes to it, the holder of the group's lease. Every process follows every journal.
//
// # Appends
//
// The replica that holds a group's lease collects the appends that wait, gives each record its
// sequence in its hub's log and its time, and stores all of them as one commit. One commit is under
// way at a time, so the appends that arrive meanwhile share the next one. In a cluster, where a
// commit costs several servers and several syncs, a busy writer pauses for 20 ms between commits.
//
// An append is answered once its commit is durable. The other replicas send their appends to the
// writer, through the broker. While no replica serves the group, appends wait for one, up to
// jsapi.Patience.
//
// # Commits
//
// A Commit is one message of a journal. It holds up to MaxRecords records of many hubs, each with
// its sequence in its hub's log and its time. Both are the writer's, so that a view can be deleted
// and written again with the same cursors. The commits of a journal are a gapless sequence, of
// which only the oldest expire. Marshal has the format.
//
// For each of its hubs a commit has a Link to the hub's commit before it, so that the records of
// one hub can be read without the others'. Every 256th commit of a hub is an anchor that
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
//   - The records of an append are stored wholly or not at all, in order and without a gap between
//     them, and only if the log has the expected end. ErrOutcomeUnknown is the only error after
//     which they may be stored. What was stored is durable, and stays where it is.
//   - A commit is stored once or not at all, also if answers are lost: it is sent on condition of
//     the journal's last sequence, and sent again until the commit at its place is known.
//   - Two writers of a group cannot both commit, whatever they know of the group's lease, which is
//     needed only to open a writer. After OpenWriter has returned, nothing of a former
//     writer is stored: the empty commit with which a term begins takes the sequence that the
//     former writer expects to be free.
//   - The sequences of a log rise by one. A writer rejects a record that does not continue the
//     hub's tip, so an index that is behind cannot damage a chain. The times of a group's records
//     grow strictly, also when the clock is set back and when another replica takes over.
//   - Subscribers and followers get every commit once and in order, and only durable ones: the
//     broker publishes a commit on the feed once it is stored, and direct gets return stored ones.
//     Sync returns once everything that was stored before the call has been passed on. The process
//     that serves a group needs no request for that.
//   - Commits that have expired or are lost are reported, never left out silently. The index keeps
//     the ends of all logs then. A log of which it has lost the end is shorter than its view: the
//     holder of the lease finds that before the log is appended to (Lease.Begin).
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
// # Goroutines
//
// Run owns the followers, Write the queue and the answers to other replicas. Both wait for their
// goroutines.
//
// # Failure
//
// While the broker does not answer, followers wait and writers ask again for 15 s. A Writer whose
// last commit has an unknown outcome, or that was fenced, fails every further call; Write opens
// another. A full disk or a missing leader leaves the writer usable. A Follower ends
// with ErrUnreadable at a message that is not a commit, and with ErrBeyondEnd if the journal has
// lost commits that were read. Its process must then start again.
//
// # Memory
//
// The queue of a follower is bounded by 32 MiB, as is what waits for a commit, the cache of readers
// by Config.CacheBytes, and what Records returns by its caller. An index takes about 120 bytes a
// hub.
package journal
