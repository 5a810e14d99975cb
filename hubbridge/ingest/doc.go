// Package ingest stores what hubs send in their event logs, and the changes of their connections in
// the event logs and the presence bucket, for one shard at a time.
//
// # Guarantees
//
//   - Each event of a hub is stored exactly once, in the order of the hub's numbers, whatever is
//     repeated, lost or interrupted. Every record carries the hub's log and number, and is appended
//     only if the log's last event is the one that this process knows. Of two writers one wins.
//   - An ack is sent once everything up to its number is stored. When storage fails there is no
//     ack, and the hub sends again.
//   - A hub whose hello has been acknowledged is online. The ack of a hello waits until the broker
//     has reported the connection, or until the hub repeats the hello.
//   - The identity of a hub's log and its last number are never forgotten. They are in the log's
//     last record, and, when retention has emptied the log, in the ingest checkpoint. A restart
//     produces no false gap and no false reset.
//   - hub.connected and hub.disconnected are appended once for each transition, also when a crash
//     comes between the log and the presence bucket.
//   - Every connection of a hub that has ended has one log line with what was received from the hub
//     (connectionStats), written once the end is stored.
//   - A hub that was reset, and one whose log was restored from a backup, has hub.log_reset as the
//     first event of the new epoch: stored at once after a reset, and with the hub's first message or
//     change of its connection after a restore. It is stored exactly once, also when a crash comes
//     between the directory and the log.
//   - The name and room set for a device are deleted before the hub's device.forgotten is stored.
//   - After a hub has been released by its organization, the events that it still holds are skipped
//     at its next hello. Its next organization never sees them.
//   - A hub can cause a bounded number of stored records (domain.HubLimit). Beyond the limit it
//     gets no ack, keeps its events, and continues later.
//   - A hub, and the hubs of an organization together, store a bounded number of bytes within the
//     retention (Budget). Beyond it a hub gets no ack and is not listened to for seconds at a time.
//   - All events of a hub with an organization are stored. For each message the hub's owner is
//     looked up in memory and, if the hub has none there, in the directory itself.
//
// # Goroutines
//
// Shard.Run receives the messages of all hubs in one goroutine, which only puts them into a bounded
// inbox for each hub. It never waits for storage, so the broker need not drop messages. Up to
// maxWorkers workers handle the hubs in turn (shares.Turns): next comes the organization whose messages
// have cost least, and of its hubs the one whose messages have: one message, or its consecutive events
// messages as one atomic batch. One worker at a time handles a hub, so a hub that floods occupies
// one worker. A message that does not fit into its inbox is dropped and counted; the hub sends it
// again, because it got no ack. Workers start with the work and end without it, but for a
// few goroutines that are kept for the next ones; Run waits for them.
//
// A hub costs some hundred bytes for its state, and no goroutine.
//
// # Failure
//
// Events that could not be stored are dropped, and their hub pauses for up to maxPause. Then its last
// ack is repeated, which makes it send again at once; so it is when a shard begins, for hubs that may
// have sent something while nobody served them. A hello is kept, and so is an observation of the
// broker, because the broker does not repeat it. A write that finds another writer's revision or
// sequence reloads the hub's state and tries again. Once another replica may hold the shard's lease,
// nothing is written and nothing acknowledged; while only the lease's bucket does not answer, what the
// journal fences goes on (package hubbridge).
//
// # Faults
//
// A FaultRegistry keeps what hubs do wrong: which hub breaks which part of the hub protocol, since
// when, and the last evidence. It holds the faults of the hubs that one process serves, in memory;
// shards and the broker report to it. At most maxHubs hubs are kept; a fault that does not fit is
// only counted. Two kinds of faults begin when something does not happen: a hub that is connected
// says no hello, or sends no event that the cloud waits for. The registry waits for these itself, in
// Run.
//
// A fault ends when the hub does the missing thing or disconnects. A fault that is an act, such as
// a malformed event, ends when it has not been repeated for quietTime. After a restart, or when
// another replica takes over the shard, faults are found again.
//
// Each fault is logged when it begins and ends. The metrics count the hubs by reason. Serve answers
// the questions of a FaultReader, in any process: each shard's faults are known to the replica that
// serves the shard.
package ingest
