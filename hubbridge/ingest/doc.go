// Package ingest turns what hubs say into their event logs, and what the broker says about their
// connections into their presence, for one shard at a time.
//
// # Promises
//
//   - Each event of a hub is stored exactly once, in the order of its numbers, whatever is sent
//     again, lost, or interrupted. The hub's numbers make it so: every record says up to which
//     number of which of the hub's logs it settles, and is appended only if the log's last event is
//     the one that this process knows. Two writers cannot both win.
//   - An ack is sent only when everything up to its number is stored. Storage that fails withholds
//     the ack, and the hub sends again.
//   - A hub whose hello has its ack is known to be online: the ack waits for the broker's word,
//     which comes by another way, until the hub says hello again.
//   - The identity and number of a hub's log are known for good: by the last record, or, when
//     retention has emptied the log, by the ledger. No false gap and no false reset, after any
//     restart.
//   - hub.connected and hub.disconnected are appended once per transition, also over a crash
//     between the log and the presence bucket.
//   - Each connection of a hub that has ended has one line in the log, written once its end is
//     stored, with what came of the hub meanwhile (tally).
//   - The name and room that were set for a device are forgotten before the hub's device.forgotten
//     is stored.
//   - A hub that was taken away from an organization leaves nothing of that organization's to the
//     next: what it holds when it says hello again is passed over.
//   - What one hub can have recorded for ever is bounded: beyond the limit it gets no ack, keeps
//     its events, and goes on when it may.
//   - The events of a hub that somebody has added are all stored: whether a hub has an owner is
//     looked up for every message, and for one that seems to have none in the directory itself.
//
// # Who does what
//
// A Shard receives the messages of its hubs in one goroutine, which only sorts them into a bounded
// queue a hub; it never waits, so the broker need not drop anything. Workers, which come and go
// with the work, take the hubs in turn: one message of one hub, or a run of its events messages as
// one atomic batch. Everything about one hub happens in one worker at a time, and a hub that floods
// holds one worker at most. What does not fit into a queue is shed and counted: it was not
// acknowledged, so the hub sends it again.
//
// A hub costs its session, some hundred bytes, and no goroutine.
package ingest
