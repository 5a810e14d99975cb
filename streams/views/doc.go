// Package views writes the streams of the hub logs, which are views of the journal: every record of
// the journal becomes a message of its hub's stream, HUB_<id>, in the account of the hub's shard.
// It also publishes each record on the feed of its log, and has the format of both.
//
// A view is an output of the journal and nothing else. Views follow the journal as every other
// reader does, and nobody waits for them: readers get what a view lacks from the journal.
//
// # Promises
//
//   - A record has the sequence in its view that it has in the journal, always. Each message is
//     sent on condition that the message before it is the view's last.
//   - A message has the headers of format.go. Its time is in Hubcloud-Time: the time at which the
//     broker stored it is another one, and changes when a view is written again.
//   - In a view, a state is a message with the body {} on the command subject; its content is in a
//     header. The feed has the message without the state.
//   - Messages of one view are written in order, messages of different views independently. A view
//     that cannot be written delays no other one.
//   - The records of a log are published on the feed in order, each once its view has it or is
//     left to a repair, with the headers of a republished message (except Nats-Last-Sequence, which
//     readers ignore). So a reader that the feed wakes finds the record in the view. A broken
//     connection may lose some: readers find the gap by the sequences and read the log. What
//     nobody subscribes to is not published, where the broker is part of the process.
//   - Memory is bounded: while commits of MaxBacklogBytes are not written, no more are taken, and
//     they are read from the journal later.
//   - Records are collected for the time of Linger, or of FeedLinger while the feed has
//     subscribers, and a view gets the records of several commits at once. A cluster cannot be
//     asked for subscribers: its records are collected for FeedLinger, and for Linger where many
//     views have some. Who needs all of a shard's views at once asks for them
//     (streams.CompleteViews).
//
// # Repair
//
// A view is current, or a repair looks at it: before its first record, when it rejects a record or
// does not answer within 10 s, and when an audit finds that something is missing. There is one way
// to make it current. A stream that is missing, has a gap, lacks messages at its front or has
// another message than the journal is deleted and created anew, with the same sequences (FirstSeq).
// Then what is missing at the end is appended from the journal. Rewritten messages have the
// lifetime that is left of the retention. The view of a hub that was released from its organization
// is created anew after the end of the log, without messages: nobody may read them. Records that
// arrive meanwhile are kept in memory, at most 256 a view. A repair that fails is tried again after
// 1 s, later up to a minute, until it succeeds.
//
// A view that is longer than its log means that the journal has lost the log's end: the journal
// decides what the log has, and gives the sequences that it has lost out again. Config.LostEnd
// begins a new epoch, and then the view is deleted. Begin does that before a hub's first append in
// a term.
//
// A stream with other subjects, storage or retention policy is not touched, and is reported at each
// try. Nobody else may write to the streams: a foreign message is found and removed, except between
// two messages that are sent at the same moment.
//
// # Audits
//
// At the start all views are compared with the list of streams, by their ends, gaps and fronts.
// That finds views that were removed or truncated while the service was stopped, or lost by a power
// cut: they need no sync. In a cluster they are compared again every ten minutes, every minute
// while some server is away, and once a server has started (Config.ServerStarted): it may have lost
// what it had.
//
// # Clusters
//
// A view has one copy, on a server that JetStream chooses. The server acknowledges a message before
// it has written it to its files (persist mode async): otherwise it would sync every single
// message, as it must for the journals. So a crash of the server loses the last milliseconds of
// messages, and a power cut up to the last two minutes. An audit restores them.
//
// Once the server of a view has been away for AwayDelay, the view is written again on another one:
// only then, so that the restart of a server moves nothing. A server that comes back later has an
// old copy, which JetStream removes; until then both may answer. The old one rejects new records,
// and a reader that it answers finds that it lacks the newest ones.
//
// # Goroutines
//
// Run owns all: one that follows the journal, two for each shard, one for the feed, 16 for repairs,
// one for the audit and one that looks for overdue work each second.
//
// Two processes may write to the same views for a moment, when the lease of a group changes: both
// write the same records with the same sequences, so the broker rejects one of each, and repairs
// end with the same view.
package views
