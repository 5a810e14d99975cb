// Package commands sends requests to hubs: commands, each of which is run once, and calls of the other
// methods of the hub protocol, in the types of the domain. It keeps no state about hubs.
//
// # Promises
//
//   - A hub runs a command with an idempotency key once within the window of the key, however often
//     the command is sent, at any replica, at the same moment and across crashes. The key is
//     reserved (package once) with a command ID, durably, before anything is sent.
//     Everything that is sent under the key carries this ID, and a hub runs each ID once.
//   - A final answer is remembered for the window and returned again without asking the hub. An
//     accepted command and the hub's errors not_found, invalid_request and command_refused are
//     final. After any other outcome, the same key sends the same ID again, and the hub answers
//     what it did.
//   - The same key with another command is idempotency_conflict, whatever the outcome of the first.
//   - A command to an offline hub is rejected at once. It reserves no key and is not queued.
//   - The hub's event log has each command before it is sent, and its outcome after the caller has
//     the answer: one record of each kind for each time that the command is sent. A command whose
//     key turns out to be taken may have both as well, with the outcome "withdrawn" and an ID that
//     no hub ever gets. History leaves it out.
//   - The answer of a command with an idempotency key is durable before the caller gets it. If it
//     cannot be stored, the caller gets it all the same, and a repeated command goes to the hub
//     again, which runs it once.
//   - Each command that was admitted and answered has one log line, with the ID of its own request,
//     also when it was answered from memory or shared the answer of a concurrent duplicate.
//   - A command that has begun is finished although its caller has gone, within the timeouts of the
//     hub and of storage.
//
// # The order of writes
//
// Most keys are new, and both the reservation and the record wait for the disk. So they are stored
// at the same time, and the hub is asked once both are. The answer is stored when the hub has
// answered, before the caller gets it, and the record of the outcome afterwards. What a crash or a
// power cut leaves behind depends on where it comes:
//
//   - The record without the reservation: a command without an outcome in the history. It was not
//     sent. The same command, sent again, gets another ID.
//   - The reservation without the record, or both: the same command, sent again, takes the
//     reservation over, records it again under the same ID, and sends it.
//   - The hub's answer but not the stored one: the same. The hub does not run the ID again.
//
// A process that has tried a key before, lately, reads it before it writes anything. So a process
// withdraws at most one record for a key that another process, or an earlier one, has reserved.
//
// # Concurrency
//
// A call is one command in flight, run by one goroutine. Concurrent duplicates, commands with the
// same key and content, wait for the same call. Calls of other processes show in the bucket: a
// reservation names the process that holds it, and its deadline. A process that finds a reservation
// held polls it for the answer. It takes over at once when the holder no longer answers, as after a
// crash, or at the deadline. A holder that was overtaken does no harm: the hub still runs the ID
// once, and both get the same answer.
//
// The calls in flight, and the callers that wait for them, are bounded by hub, by organization and
// in all (CallLimits). A command over a bound is rejected at once with rate_limited, before
// storage is asked. Close ends all calls.
//
// # Calls
//
// [Caller] carries one request. Any replica may send one; the answer returns to the replica that
// asked, on a topic with a token of its own.
//
//   - An offline hub is rejected at once with hub_offline, and nothing is sent.
//   - An online hub gets the request once and has the timeout to answer. A later answer is dropped,
//     although the hub may have acted.
//   - A valid answer has the id of the request and exactly one of result and error. Anything else
//     is a hub_error, and so is an error that the method does not define.
//
// [Devices] has a function for each method. A result must have every member that the hub protocol
// requires, each of its type, and be about the device or channel of the request; otherwise the call
// fails with hub_error. Nullable members may be absent, and unknown members are dropped. Timestamps
// are rewritten in the contract's format.
//
// NewCallPool bounds the calls in flight, so that hubs that do not answer cannot use up a replica.
package commands
