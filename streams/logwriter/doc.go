// Package logwriter appends to the event logs of hubs, through the journals, and reports what the
// journals have committed.
//
// # Writers
//
// The shards of an installation are divided into groups, each with a journal. The replica that
// holds a group's lease serves the group: its writer collects the appends that wait, gives each
// record its sequence in its hub's log and its time, and stores all of them as one commit. One
// commit is under way at a time, so the appends that arrive meanwhile share the next one. In a
// cluster, where a commit costs several servers and several syncs, a busy writer pauses for 20 ms
// between commits.
//
// An append is answered once its commit is durable. The other replicas send their appends to the
// writer, through the broker. While no replica serves the group, appends wait for one, up to
// jsapi.Patience.
//
// # Promises
//
//   - The records of an append are stored wholly or not at all, in order and without a gap between
//     them, and only if the log's last event is the expected one. States that depend on the whole log
//     are stored only if its last record is the expected one.
//   - The sequences of a log rise by one. The times of a group's records grow strictly, also when
//     the clock is set back and when another replica takes over.
//   - Two writers of a group cannot both commit: each commit names the commit that it follows, and
//     a new writer begins with a commit of its own.
//   - ErrOutcomeUnknown is the only error after which records may be stored.
//
// # Following
//
// Every replica follows all journals, whether it serves them or not. Router.Subscribe passes on
// each commit once, in the order of its journal and after it is durable. Router.Sync returns once
// everything that was stored before the call has been passed on. The process that serves a group
// needs no request for that.
//
// # Back-pressure
//
// Hub logs are views, written from the commits (package hubviews). A writer whose views are too far
// behind stops committing until they have caught up. Appends then wait, and hubs get no acks.
//
// # Goroutines
//
// Router.Run owns the followers, Router.Serve the writer and the answers to other replicas. Both
// wait for their goroutines.
package logwriter
