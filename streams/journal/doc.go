// Package journal stores the records of hub logs, many hubs' records in one write. The journal is
// what is durable: the hubs' own streams are views that are written from it later.
//
// # Commits
//
// A Commit is one message of a journal. It holds up to MaxRecords records of many hubs, each with
// its sequence in its hub's log and its time: both are the writer's, so that a view can be deleted
// and written again with the same cursors. Marshal has the format.
//
// For each of its hubs a commit has a Link to the hub's commit before it, so that the records of
// one hub can be read without those of the others. Every 256th commit of a hub is an anchor that the
// following ones link to as well: a reader can step over 256 commits at once, and needs a few
// hundred reads for any place of a log of a hundred thousand commits.
package journal
