// Package orgfeed reads the events of all hubs of an organization as one feed.
//
// # Order
//
// The events of a hub come in the order of its log, none left out and none twice. Between hubs they
// come in the order in which they were stored, as far as the journals tell: exactly within a group
// of shards, and otherwise as this process received them.
//
// # Positions
//
// The times of a group's records grow strictly (package journal). So a Position has one time for
// each group: everything up to that time has been delivered, everything after it has not. It does
// not depend on which hubs the organization has, on filters, or on the replica. It also has the
// time at which it was known that everything older had been delivered: a position that is older
// than the retention by that time is rejected with 410. Readers of a quiet feed get their position
// with a new time before it has reached half the retention.
//
// # Reading
//
// All readers of an organization in one process share a ring of the newest events, each encoded
// once. It is opened by the first reader and kept for a while after the last, and receives the
// commits of the journals, which this process follows anyway. A reader behind the ring needs a
// merge of the logs of the hubs that have newer records, by time. A merge reads their events
// through the cache of package feed, which all readers share, and keeps of each hub only where to
// read on.
//
// Streams behind the ring that follow all hubs share a catch-up: one merge, of which a span of
// the newest events is kept, each encoded once. So readers that reconnect at once, as after a
// restart, cost one reading of the logs; with a merge each, a hundred of them took three times the
// CPU. A reader that is too slow for the span begins another catch-up or, if there are
// maxCatchUps, a merge of its own. So do readers of some hubs, and pages. A page that ends in the
// middle of its merge leaves it for the next page.
//
// Filters choose events, not positions: the position of a filtered reader moves on with what was
// filtered out.
//
// # Gaps
//
// A hub never ends the feed of its organization. Where events of one hub are gone for a reader, for
// example because its log was reset before the reader had read it, the feed has an event feed.gap
// in the place of the last of them. A gap has a time like every event, so it comes once, whatever
// process reads, and a reader that has passed it does not get it again. A reader without a position
// has lost nothing. A hub that leaves the organization disappears from the feed.
//
// # Goroutines
//
// The ring receives events in the goroutines of the journals. Run, which the caller owns, closes
// idle rings and confirms that quiet feeds are complete. Readers have no goroutines.
//
// # Failure
//
// The errors are of package feed: service_unavailable while a journal has no leader, after
// which a reader may go on, cursor_expired, and domain.ErrEventsClosed.
//
// # Memory
//
// The rings and the catchUps share the budget of package feed's tails. Each is also bounded in
// events. At most mergeSlots readers, of one organization some of them in turn, hold the events of a
// merge at once. A waiting merge takes about 200 bytes a hub.
//
// # Named readers
//
// A Registry knows the readers of events that name themselves: which position of a hub's log or of
// its organization's feed each was last given, when, and how many events follow. Saw only changes
// memory. Page and the metrics answer from memory: the lag of a reader that has stopped reading
// grows with what is stored, without any write.
//
// Of each organization the newest 1,000 readers are kept, for seven days after they last read. A
// reader that is too many takes the place of the one of its own organization that has not read for
// longest, so an organization that makes up names disturbs nobody else. A process keeps at most
// 100,000 readers; beyond that the organization with the most loses its oldest.
//
// The bucket `feed-readers` has one value for each organization. Every replica follows the bucket
// and writes an organization's value when its own requests have changed it: at most every five
// seconds, and for large values at most 16 KiB a second. Writes are conditional on what was read,
// and merged: the newest read of a reader counts. So a replica knows another one's readers some
// seconds late. A killed replica loses the reads of these seconds; a stop writes them.
//
// How many events follow a position of an organization's feed is known where it was read. Each
// replica counts what is stored afterwards (RegistryConfig.Counted). While readers stand still,
// their counts are written again every minute: a replica that starts may count up to a minute of
// events too few for a reader that stopped before. Losing the bucket loses the list until the
// readers read again, and nothing else.
//
// Registry.Run, which the caller owns, follows the bucket and writes to it. While the broker does
// not answer, writes are tried again, and the list goes on with what this replica knows.
package orgfeed
