// Package hublog keeps what happened at each hub: its own events, the cloud's `hub.*` events and
// the commands sent to it, in one stream a hub, for as long as the retention says. It stores, and
// it serves every reader: pages, long polls and live streams.
//
// # Storing
//
// Append stores a hub's events wholly or not at all, behind the last event that the caller knows
// of, and fails with ErrConflict when there is another. What it has confirmed is on disk. One
// message of a hub is one atomic batch, which lies in the stream without a gap.
//
// # Cursors
//
// An event's cursor is made from what never changes: the epoch of the log, the event's
// sequence and when it was stored, to the millisecond. So it is always the same, whichever replica
// makes it and whether the event came through the feed or was read from the log. A position cursor,
// which a page without events and a quiet stream hand out, has the sequence and the instant at
// which the log was seen to end there. Of both kinds this holds: every message behind the cursor's
// sequence was stored at or after the cursor's time. A cursor that is not older than the retention
// has therefore nothing dropped behind it, be it events or commands, and one that is older answers
// 410. A quiet log gives positions anew once they are past half the retention, so whoever keeps
// reading never gets a 410.
//
// # Reading
//
// A log has one tail a process, opened by the first reader and kept a while after the last: a
// subscription to the feed, in which the stream publishes again what it has stored, and a ring of
// the newest events, encoded once and shared. Behind the ring, history is read from the log in
// batches, through one cache of blocks, bounded in bytes, that all readers share; who needs what
// another is loading waits for that.
//
//   - Order is the stream's. A reader is a position: it goes on with the very next event, from the
//     log or from the ring, and nothing is left out or repeated. A reader that falls behind the
//     ring reads from the log again. There are no queues a reader, and a slow reader holds up
//     nobody.
//   - The feed may lose messages. Sequences without a gap show it at once, and a check against the
//     stream shows what a gap cannot: on every page that reaches the end, every few seconds for a
//     log that is followed, and after each reconnection.
//   - The broker publishes the messages of a batch before the batch is on disk. Readers get them
//     afterwards: when Append has the confirmation, or, for batches of other processes, when the
//     broker has answered a request that waits for the batch. So no reader has seen what a crash
//     could take back.
//   - A log that is begun anew ends its readers with ErrLogEnded.
//   - A Group follows many logs for one goroutine: their tails wake it through one channel, and it
//     reads those that have something.
//
// # Memory
//
// Rings are bounded by count, and all together in bytes; the cache is bounded in bytes; reads of
// the log by number and size. An idle reader is one small structure and costs no goroutine.
package hublog
