// Package backup takes what an installation keeps on its broker into a folder, while it serves, and
// brings it back into an empty one.
//
// # What is taken, and in what order
//
// The buckets first (settings, use of keys, presence, the ledgers of hubs' logs, answers to
// commands), then the mails that wait, the hub logs if they are asked for, and the DIRECTORY last,
// each stream as it is at one moment. So everything else is as old as the DIRECTORY or older, which
// is what a service finds that was killed at that moment: its buckets and ledgers are written after
// what they speak of, and every part of it knows how to go on from there. The other way round there
// would be events and ledgers of hubs that nobody has added yet.
//
// A bucket is read from the front until nothing is left, and not as a stream at one moment: a key
// that is written meanwhile moves to the end, and a snapshot would have it neither where it was nor
// where it is. Each key is there with a value that it had during the backup.
//
// Batches of a bucket come from whichever replica answers. One that is behind gives fewer keys, or
// a value of before, which the key had during the backup or a moment earlier; that nothing is left
// is asked of the leader. Snapshots are taken by leaders. The list of streams and their state are
// the leaders' too; a leader that is deposed and cut off knows nothing of what was stored since,
// for at most 20 s. A backup through it is of that moment: older, and whole. A stream that is
// missing in it would be of a hub that was added since, which the DIRECTORY of the same side does
// not have either.
//
// Not taken: sessions of the portal and links to sign in (what was ended or used since would work
// again: people sign in anew), leases and heartbeats, which are of running processes, and Postgres,
// which is made anew from the rest.
//
// # Promises
//
//   - Streams come back with the same sequences and times, whichever broker they are restored to:
//     one server or a cluster, with 1 or 3 replicas.
//   - Memory does not grow with what is taken: streams and buckets pass through.
//   - A backup that was not finished never looks like one: SHA256SUMS is written last, and without
//     it nothing is restored.
//   - Restore reads every file and compares its sum before it touches anything. A file that is
//     damaged, cut or missing is refused by name.
//   - After a restore no cursor of an event that is lost is taken for a place in the log: every
//     hub's log has another tag (domain.HubLogRestored). Without hub logs in the backup every
//     cursor of before answers 410; with them those of what is in the backup go on.
//   - What hubs sent after the backup, had acknowledged and hold no more is told to readers as
//     hub.events_skipped: the ledger is of the backup.
//   - A restore that is interrupted leaves a mark on the broker; restoring again begins from the
//     start, and a service does not start on it.
package backup
