// Package commands sends commands to hubs, each once.
//
// # Promises
//
//   - A command with an idempotency key is run once by its hub within the window, however often it
//     is sent, at whatever replica, also at the same moment and over crashes. The key is reserved
//     (package idempotency), with the id under which the hub knows the command, before anything is
//     sent; everything that is ever sent under the key carries that id, and a hub runs an id once.
//   - What settled the matter is remembered for the window and answered again without asking the
//     hub: that the hub accepted the command, and that it refused it for good (not_found,
//     invalid_request, command_refused). After any other outcome the same key sends the same id
//     again, and the hub answers what it did.
//   - The same key for another command is idempotency_conflict, whatever has become of the first.
//   - A hub that is offline is refused at once; nothing is reserved then, and nothing queued.
//   - The hub's log has each command before it is sent, and what became of it once the caller has
//     its answer: one record of each kind for each time it was sent.
//   - Each caller who gets an answer has one line in the log, that of a flight that was shared or
//     remembered too, under its own request's id.
//   - What was begun is finished though the caller has gone: within the hub's time-out and that of
//     storage.
//
// # Who does what
//
// A flight is one goroutine that sees a command through. Callers that come with the same key and
// command while it is under way wait for the same flight. Flights of other processes are seen in
// the bucket: the reservation names its holder and until when it may take, and who comes second
// looks again until there is an answer. It takes over when the holder does not answer to its name
// any more, as after a crash, which shows at once, or when its time is over. A holder that is
// overtaken does no harm: the hub still runs the id once, and both hear the same.
//
// What is under way is bounded by hub, by organization and in all, so that no organization can hold
// what others need (Places): one too many is refused at once with rate_limited, before anything is
// asked of storage. Those who wait for the same command count too. Close ends all.
package commands
