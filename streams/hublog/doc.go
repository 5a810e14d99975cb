// Package hublog stores the event logs of hubs and serves their readers: pages, long polls and live
// streams.
//
// # Streams
//
// Each hub has one JetStream stream. It holds the hub's own events, the cloud's `hub.*` events and
// the records of commands, and drops each message once it is older than the retention. Which of the
// events belong to the hub's log is decided by the log's epoch (domain.Epoch), which comes from the
// directory.
//
// Append stores a batch of events wholly or not at all, after the last event that the caller
// expects; otherwise it fails with ErrConflict. Confirmed events are synced to disk. A batch lies
// in the stream without a gap.
//
// # Cursors
//
// The cursor of an event is made of the log's epoch, the event's sequence in the stream and the
// millisecond in which it was stored. None of them ever changes, so every process makes the same
// cursor, from the feed as from the stream. A position cursor stands for a place without an event:
// it has the sequence at which the stream ended, and the time at which that was observed. Pages
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
// for a while after the last. A tail is a subscription to the feed, on which the stream republishes
// each message, and a ring of the newest events, each encoded once. Older events are read from the
// stream in batches through one cache of blocks that all readers share; concurrent readers of the
// same block wait for one load.
//
//   - Readers get events in the order of the stream, none twice and none left out. A reader is only
//     a position: its next event comes from the ring or, if the reader has fallen behind the ring,
//     from the stream. There are no queues per reader, so a slow reader delays no other.
//   - The feed may lose messages. A gap in the sequences shows a loss at once. A check of the tail
//     against the stream shows the rest: when a page reaches the end, every few seconds for a log
//     with readers, and after each reconnection.
//   - The broker publishes the messages of a batch before the batch is on disk. The tail holds them
//     back until they are durable: until Append is confirmed or, for batches of other processes,
//     until the broker has answered a request that it can only answer after the batch. So no crash
//     takes back what a reader has seen.
//   - A new epoch ends the readers of the former one with ErrEpochEnded.
//   - A Group reads many logs in one goroutine: their tails wake it through one channel.
//
// Source reads hub logs from outside the service, through a tap's account, without tails and cache.
//
// # Goroutines
//
// Each shard has one goroutine that distributes its feed to the tails. Checks and durability
// requests run in goroutines of their own, at most one of each per tail. Close waits for all of
// them. Run, which the caller owns, removes idle tails, ends replaced logs and starts due checks.
// Readers and groups have no goroutines.
//
// # Failure
//
// A broker without a leader for a stream fails reads with service_unavailable after 15 seconds;
// readers may call Next again. A tail whose stream has lost events that readers have seen ends them
// with ErrEpochEnded. A server that is cut off from the broker ends its readers with ErrLost.
//
// # Memory
//
// The rings are bounded in events each, and in bytes together. The cache is bounded in bytes, reads
// of the stream in number and size. An idle reader is one small structure.
package hublog
