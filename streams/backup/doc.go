// Package backup writes the data that an installation keeps on its broker to a folder, while the
// service runs, and restores it into an empty broker.
//
// # Contents and order
//
// A backup has the buckets first (settings, use of keys, presence, ingest checkpoints, answers to
// commands, what was mailed about alarms, positions of webhooks), then the queued mails, the books of
// organizations, the
// journals with the hub logs if they are wanted, and the DIRECTORY last. The hubs' streams are
// written again from the journals. Each stream is a snapshot of one moment. Everything else is
// therefore as old as the DIRECTORY or older. A service that was killed finds the same state,
// because it writes buckets and ingest checkpoints after the events that they refer to, and every
// part of it can continue from there. With the DIRECTORY first, a backup could have logs and
// checkpoints of hubs that its DIRECTORY does not know.
//
// A bucket is read from its first message to its last instead: a key that is written meanwhile
// moves to the end of the bucket's stream. The backup has every key, with a value that the key had
// during the backup or a moment earlier, because any replica may answer. Only the leader decides
// that a bucket has no more keys.
//
// Snapshots, the list of streams and their states come from leaders. A deposed leader that is cut
// off does not know for up to 20 s what was stored since. A backup from that leader is older, but
// consistent.
//
// Not in a backup: portal sessions and sign-in links (ended or used ones would work again), leases
// and heartbeats, which belong to running processes, and Postgres, which is rebuilt from the rest.
//
// # Promises
//
//   - Restored streams have the same sequences and times, on one server or on a cluster, with one
//     or three replicas.
//   - Memory does not grow with the amount of data: streams and buckets are never held whole.
//   - An unfinished backup cannot be mistaken for a finished one: SHA256SUMS is written last, and
//     Check rejects a folder without it.
//   - Check reads every file and compares its checksum. A file that is changed, cut or missing is
//     ErrDamaged, with its name.
//   - After a restore every hub's log has a new epoch (domain.HubLogRestored), so no cursor of an
//     event that was lost points into the log. Cursors of events in the backup remain valid; all
//     others answer 410.
//   - Events that hubs sent after the backup, and deleted once they were acknowledged, are lost.
//     The next ingest reports them as hub.events_skipped, since the ingest checkpoint is as old as
//     the backup.
//   - An interrupted restore leaves a marker on the broker. A service does not start on that
//     broker, and the next restore starts over.
//
// # Goroutines
//
// Every function waits for the goroutines that it starts.
package backup
