// Package hubviews writes the streams of the hub logs, which are views of the journal: every record
// of a commit of the journal becomes a message of its hub's stream, HUB_<id>, in the account of the
// hub's shard. It also publishes each record on the feed of its log.
//
// Views are those of one group of the journal, for as long as the process is the group's writer.
// The writer adds each commit once the journal has stored it.
//
// # Promises
//
//   - A record has the sequence in its view that it has in the journal, always. Each message is
//     sent on condition that the message before it is the view's last.
//   - A message has the headers of package logformat. Its time is in Hubcloud-Time: the time at
//     which the broker stored it is another one, and changes when a view is written anew.
//   - A state looks to readers of the view like the record of a command without content: it is a
//     header of a message with the body {}. The feed has the message without the state.
//   - Messages of one view are written in order, those of different views independently. A view
//     that cannot be written, is missing or must be repaired delays no other one.
//   - The records of a log are published on the feed in order, each once its view has it or is
//     left to a repair, with the headers of a republished message (except Nats-Last-Sequence, which
//     readers ignore). So a reader that the feed wakes finds the record in the view. A broken
//     connection may lose some: readers find the gap by the sequences and read the log. What
//     nobody subscribes to is not published, where the broker is part of the process.
//   - Memory is bounded: Add waits while commits of more than MaxBacklogBytes are not written.
//   - Nobody need wait for a view, since readers get what it lacks from the journal. So records
//     are collected for the time of Linger, or of FeedLinger while the feed has subscribers, and a
//     view gets those of several commits at once. A cluster cannot be asked for subscribers: its
//     records are collected for FeedLinger, and for Linger where many views have some.
//
// # Repair
//
// A view that rejects a record or does not answer within 10 s falls behind: its records leave the
// memory, and a repair gets them from the journal. A repair that fails is tried again after 1 s,
// later up to a minute, until it succeeds. What it does:
//
//   - A view that ends early gets the rest appended.
//   - A view that is missing, has a gap, lacks messages at its front or has another message than
//     the journal is deleted and written anew, so that sequences stay (FirstSeq). Repaired
//     messages have the lifetime that is left of the retention.
//   - Messages from before there was a journal are not in the journal. A view that is written anew
//     keeps them, from memory, as far as they precede the journal's records without a gap. Only
//     the newest 64 MiB are kept; a crash in the middle of such a rebuild loses them.
//   - A view that is longer than the journal's log is written anew, after Config.LogLostEnd: the
//     journal decides what the log has, and gives the sequences that it has lost out again.
//
// # Clusters
//
// A view has one copy, on a server that JetStream chooses. The server acknowledges a message before
// it has written it to its files (persist mode async): otherwise it would sync every single message,
// as it must for the journals. So a crash of the server loses the last milliseconds of messages, and
// a power cut up to the last two minutes. An audit restores them once the server has started again
// (Config.ServerStarted). Until then pages of events come from the journal, Await completes the view
// that it waits for, and Flush waits for the audit. Views from before this was so keep their persist
// mode, which cannot be changed, until they are written anew.
//
// While that server is away, Await returns
// ErrAway. Once it has been away for AwayDelay, the view is deleted and written anew on another
// server, with the same sequences: only then, so that the restart of a server moves nothing, and
// only if the journal has everything that the view may have. A server that comes back later has an
// old copy, which JetStream removes; until then both may answer. The old one rejects new records,
// and a reader that it answers finds that it lacks the newest ones.
//
// A stream that is written anew with messages from before there was a journal gets Config.Replicas
// copies. Streams with several copies keep them until the journal has all that they have. Then an
// audit removes all but one, at most five streams a second.
//
// # Streams of others
//
// A stream with other subjects, storage or retention policy is not touched, and is reported at each
// try. A stream from before there was a journal gets the configuration of a view when it is first
// written to; from then on JetStream does not republish it.
//
// A foreign message that is stored between two messages of one run, in the moment in which they are
// sent, would not be noticed: nobody else may write to the streams.
//
// # Start
//
// Views need not be synced to disk when they are acknowledged. A position counts as synced when its
// commits were written SyncDelay ago, and is then stored in a bucket. The next Views compare all
// views whose logs were written to after it. In the background they then compare all others with
// the list of streams, by their ends, gaps and fronts: that finds views that were removed or
// truncated while the service was stopped. In a cluster they repeat that every ten minutes, every
// minute while some server is away, and once a server has started (Config.ServerStarted): it may have
// lost what it had.
//
// # Goroutines
//
// Run owns all: one for each shard, one for the feed, 16 that look at streams before their first
// record is sent, 8 for repairs, one for the audit and one that looks for overdue work each second.
// They wait for work without polling, except for the last. Commits added before Run wait for it.
//
// When Run ends, what is in the backlog is left to the next Views, of this or another process,
// which find it in the journal. Two processes may write to the same views for a moment, when the
// writer of a group changes: both write the same records with the same sequences, so the broker
// rejects one of each, and repairs end with the same view.
package hubviews
