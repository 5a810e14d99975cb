// Package tap reads the events of all hubs, or of some, for analytics: first what is kept, then
// what comes, into a file, a pipe or a JetStream stream of one's own. It needs nothing of the
// service but the account of a tap, which can do nothing but read.
//
// # Promises
//
//   - Order is that of each hub's log; there is none across hubs. Nothing of a hub is delivered
//     before what comes before it has been.
//   - At least once: with a Checkpoint, a tap that ends in whatever way goes on from the last one
//     that was written, which is never ahead of what its Output confirmed. What was delivered since
//     is delivered again, with the same identity.
//   - Nothing is left out in silence. What a log has lost before it was read, a log that is not the
//     one that was read before, and a log that its hub began anew are records of their own, in
//     their place (see Note).
//   - Nothing is delivered that a crash of the broker could take back: reads of the log wait for
//     the batch that is being stored, and of the feed only what came in no batch is taken.
//   - The broker away, restarted or killed: the tap waits and goes on.
//
// # How it reads
//
// The feed of all hubs, in which streams publish again what they have stored, says which hub has
// how much: a hub whose log is behind that is due. Workers take the hub that has been due for
// longest, read a batch behind its position straight from its log, deliver it, and move the
// position. A message of the feed that is certain to be on disk and follows the position at once
// needs no reading; such messages are kept within bounds, and what is beyond them is read. A hub
// has one worker at a time, so order needs nothing else, and a hub that is due twice waits once:
// memory is bounded by the number of hubs and those bounds, however slow the Output is.
//
// The tap subscribes to the feed before it lists the logs, so between history and what comes there
// is no gap. A feed may lose messages; what came last in a quiet log would then be found by nobody.
// So the logs are listed again when the connection was lost, when messages were dropped, and every
// half minute.
//
// After a start or a lost connection, a read begins with the message at the position itself: when
// that is another one than was read, the log is not the same.
//
// Run owns every goroutine but one: a write to a pipe that nobody reads cannot be broken off, and
// is left behind when the process ends.
package tap
