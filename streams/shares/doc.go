// Package shares decides who may use how much of what all organizations share, so that what one
// organization costs another is bounded. deploy/docs/limits.md is the table of its bounds.
//
// # Who spends
//
// A Spender is an organization and one of its keys, hubs or members. What no organization asks for,
// such as requests without a key, is spent by addresses, which count as one organization together.
//
// # What is spent
//
// There are three kinds of bound, and no fourth.
//
//   - A Pool bounds what is held at the same time: connections to the database, event streams,
//     calls to hubs, folds, bytes in memory, bytes on disk. Each organization may hold half of what
//     the others leave, or another part of it, and each of its spenders what Limits say. So what
//     nobody uses is lent at once, and however much some organizations hold, another one finds some
//     left. Who may wait (Pool.Wait) is served in turn: first the organization that holds least,
//     then its spender that holds least, and of equals the one that was served longest ago. What is
//     lent comes back as its holders release it, so a user of a Pool must hold nothing without a
//     limit in time.
//   - A Rate bounds what is spent in a time: requests, changes, commands, connections, bytes of
//     hubs. It is a token bucket for each spender. Rates can be shared by all replicas (ShareRate).
//   - Turns order what one worker does for all: writing states, mailing about alarms. First comes
//     what is urgent, then the organization whose work has cost least, then its spender whose work
//     has cost least. So an organization waits for one piece of another's work, not for all of it.
//
// Limits that are exact over replicas and restarts are no shares: they are decided from what is
// recorded, such as domain.HubLimit from the facts of a hub, and mails of a member in an hour from
// the record of the organization's mails.
//
// # What happens beyond a bound
//
// Requests get rate_limited with Retry-After, from the errors that Pool and Rate return. Hubs get
// no ack (package ingest) and try again.
//
// # Who sees it
//
// A Registry has every Pool, Rate and Turns of a process: it exports the metrics hubcloud_shares_…,
// and the doctor shows its Report: who uses how much of what, and who is held back. It also knows
// whether several organizations are active (Registry.OthersActive): then some bounds are tighter.
//
// # Promises
//
//   - Time is an input of Rate and Registry.Active; Pool and Turns have no clock. None starts a
//     goroutine.
//   - Memory is bounded by what is held, and by the spenders of recent time.
//   - Everything is safe for concurrent use.
package shares
