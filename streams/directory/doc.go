// Package directory is the record of who owns what: the stream DIRECTORY, which keeps every event
// for ever, the aggregates that are folded from it, and the commands that write to it.
//
// An aggregate (an organization with its members and invitations, an account, a site, a hub, a key)
// is what is stored under one subject. A command loads it, lets the domain decide, and appends what
// was decided on condition that nothing was appended since. So a rule that one aggregate holds (a
// hub has one owner, an organization is never without one) holds whoever races, on however many
// replicas.
//
// # Promises
//
//   - Append stores all its events or none, and stores none when the aggregate has moved on
//     (ErrConflict). An answer that is lost is looked for: the same events are sent again on the
//     same condition, so that only one of the two can be stored, and told apart by their ids.
//   - Load, Repository.Get and everything built on them are fresh: they answer at least what was
//     acknowledged before the call, also when a replica of the broker is behind.
//   - Follow gives every event once, in the order of the log, across reconnects and restarts of the
//     broker. What it cannot read is given with an error in its place and never left out.
//   - Updates that one process makes of one aggregate come in turn, unless one takes more than two
//     seconds, so that they need not be decided again and again.
//   - States are values: what a Repository hands out never changes.
//   - Nothing here starts a goroutine that outlives the call. Log, Repository and Service are safe
//     for concurrent use.
package directory
