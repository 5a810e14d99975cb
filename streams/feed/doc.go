// Package feed stores the event logs of hubs and serves their readers: pages, long polls and live
// streams.
//
// # Records
//
// A log has the hub's own events, the cloud's `hub.*` events, the records of commands, and states:
// what the hub's devices last reported, for the service itself. Readers see the events only; the
// other records only use up sequences. Entries returns events and states. Records are stored
// through the journal of the hub's group (package journal), which gives each its sequence in the
// log and its time. Append stores a batch of events wholly or not at all, after the last event that
// the caller expects; otherwise it fails with ErrConflict. Confirmed records are durable. Each
// record counts the events up to it, so how far a reader is behind is a subtraction. Which of
// the events belong to the log is decided by the log's epoch (domain.Epoch), which comes from the
// directory.
//
// Each hub has one JetStream stream, which is a view of the journal: package views writes it a
// moment later, and writes it again if it was lost. It drops each record once it is older than the
// retention.
//
// # Cursors
//
// The cursor of an event is made of the log's epoch, the event's sequence and the millisecond in
// which it was stored. None of them ever changes, so every process makes the same cursor, from the
// journal as from a stream that was written again. A position cursor stands for a place without an
// event: it has the sequence at which the log ended, and the time at which that was observed. Pages
// without events and quiet streams return position cursors.
//
// For both kinds, every message after the cursor's sequence was stored at or after the cursor's
// time. So nothing after a cursor has expired as long as the cursor is younger than the retention;
// an older cursor gets 410. Readers of a quiet log get a new position before their cursor has
// reached half the retention, so a client that keeps reading never gets a 410.
//
// # Reading
//
// All readers of a log in one process share a tail, which is opened by the first reader and kept
// for a while after the last. A tail is a ring of the newest events, each encoded once. It receives
// the records of every commit of the journal, which this process follows anyway: a reader costs the
// broker nothing. Older events are read from the hub's stream in batches, through one cache of
// blocks that all readers share; concurrent readers of the same block wait for one load. What the
// stream lacks, because it is behind, damaged or away, is read from the journal. A stream that does
// not answer within a second is not asked for the next five.
//
//   - Readers get events in the order of the log, none twice and none left out. A reader is only a
//     position: its next event comes from the ring or, if the reader has fallen behind the ring,
//     from the stream or the journal. There are no queues per reader, so a slow reader delays no
//     other.
//   - Readers see a record once its commit is durable, never before. So no crash takes back what a
//     reader has seen.
//   - A page reflects everything stored before the call. The process that writes the journal knows
//     that without a request; others ask the journal for its end, one request for all callers.
//   - A new epoch ends the readers of the former one with ErrEpochEnded.
//
// Source reads hub logs from outside the service, through a tap's account, without tails and cache.
//
// # Goroutines
//
// Tails receive records in the journal's goroutines. The checks that Run starts have goroutines of
// their own. Close waits for all of them. Run, which the caller owns, removes idle tails, ends
// replaced logs and starts due checks. Readers have no goroutines.
//
// # Failure
//
// A journal without a leader fails reads with service_unavailable after 15 seconds; readers may
// call Next again. A tail whose journal has lost events that readers have seen ends them with
// ErrEpochEnded. A server that is cut off from the broker ends its readers with ErrLost.
//
// # Memory
//
// The rings are bounded in events each, and in bytes together. The cache is bounded in bytes, reads
// of the stream in number and size. An idle reader is one small structure.
package feed
