// Package feedreaders knows the readers of events that name themselves: which position of a hub's
// log or of its organization's feed each was last given, when, and how many events follow.
//
// Saw only changes memory. List and the metrics answer from memory: the lag of a reader that has
// stopped reading grows with what is stored, without any write.
//
// # Bounds
//
// Of each organization the newest 1,000 readers are kept, for seven days after they last read. A
// reader that is too many takes the place of the one of its own organization that has not read for
// longest, so an organization that makes up names disturbs nobody else. A process keeps at most
// 100,000 readers; beyond that the organization with the most loses its oldest.
//
// # Replicas
//
// The bucket `feed-readers` has one value for each organization. Every replica follows the bucket
// and writes an organization's value when its own requests have changed it: at most every five
// seconds, and for large values at most 16 KiB a second. Writes are conditional on what was read,
// and merged: the newest read of a reader counts. So a replica knows another one's readers some
// seconds late. A killed replica loses the reads of these seconds; a stop writes them.
//
// How many events follow a position of an organization's feed is known where it was read. Each
// replica counts what is stored afterwards (Config.Counted). While readers stand still, their
// counts are written again every minute: a replica that starts may count up to a minute of events
// too few for a reader that stopped before. Losing the bucket loses the list until the readers read
// again, and nothing else.
//
// # Goroutines and failure
//
// Run, which the caller owns, follows the bucket and writes to it. While the broker does not
// answer, writes are tried again, and the list goes on with what this replica knows.
package feedreaders
