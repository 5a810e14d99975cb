// Package tap reads the events of all hubs, or of some, for analytics: first the stored events,
// then new ones as they arrive. It writes them to a file, a pipe or a JetStream stream. A tap needs
// only the broker account of a tap, which can read hub logs and nothing else. Users are the
// accounts with their passwords, as the service keeps them.
//
// # Promises
//
//   - Order: records of a hub come in the order of its log. There is no order between hubs.
//   - At least once: a tap with a Checkpoint resumes from the last one written, however it ended. A
//     checkpoint is never ahead of what the Output confirmed. Records delivered after it are
//     delivered again, with the same identity.
//   - No silent loss: events that expired before they were read, a log that is not the one read
//     before, and a log that its hub started over are reported by records of their own, in place
//     (see Gap and LogBegun).
//   - Only durable events are delivered. A read of the log waits for the batch that is being
//     stored, and a message of the feed is used only if it was stored on its own.
//   - While the broker is down, the tap waits, and then continues.
//
// # How it reads
//
// The feed republishes every stored event of all hubs. A hub with new events is due. A worker takes
// the hub that has been due longest, reads one batch after the hub's position from its log,
// delivers the batch and advances the position. A message of the feed that is durable and directly
// follows the position is delivered without a read. Such messages are buffered up to a limit;
// beyond it the log is read. Only one worker at a time has a hub, which keeps the order, and a hub
// is queued at most once. Memory is therefore bounded by the number of hubs and the buffer's limit,
// however slow the Output is.
//
// The tap subscribes to the feed before it lists the logs, so no event falls between history and
// new events. A feed may lose messages, and a loss at the end of a quiet log would go unnoticed.
// The tap therefore lists the logs again after a reconnect, after dropped messages, and every half
// minute.
//
// After a start or a reconnect, the first read of a log includes the message at the hub's position.
// If that is not the message that was delivered, the log has been replaced. A log that ends before
// the position has been replaced too, or a server has lost its end, which the service then restores
// from the journal: the tap waits for Config.ReplacedAfter before it believes the former.
//
// Run owns all goroutines except one: a write to a pipe without a reader cannot be interrupted, and
// is abandoned until the process ends.
package tap
