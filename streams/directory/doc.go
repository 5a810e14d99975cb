// Package directory is the record of who owns what: the stream DIRECTORY, which keeps every event
// forever, the aggregates that are folded from it, and the commands that append to it.
//
// An aggregate (an organization with its members and invitations, an account, a site, a hub, a key)
// is everything stored under one subject. A command loads the aggregate, lets package domain
// decide, and appends the events on condition that nothing was appended since. So a rule of one
// aggregate (a hub has one owner, an organization has at least one) holds under concurrent commands
// on any number of replicas.
//
// Service has the commands. What they need besides the log (presence, connections, hub logs, mails,
// rate limits) comes through the interfaces in ports.go. KeyUse has when API keys were last used.
//
// # Promises
//
//   - Append stores all its events or none, and none when the aggregate has changed since it was
//     loaded (ErrConflict). When the broker's answer is lost, Append sends the same events again on
//     the same condition, so that only one of the two can be stored, and recognizes them by their
//     ids.
//   - Load, Repository.Get and everything built on them return at least what was acknowledged
//     before the call, also when a replica of the broker is behind.
//   - Follow passes on every event once, in the order of the log, across reconnects and restarts of
//     the broker. An unreadable event is passed on with an error, and never left out.
//   - Updates of one aggregate by one process run one after the other, unless one takes more than
//     two seconds, so that they seldom conflict.
//   - States are values: a state that a Repository has returned never changes.
//   - The package starts no goroutine that outlives a call. Log, Repository, Service and KeyUse are
//     safe for concurrent use.
package directory
