// Package statelog writes the states of hub logs: what a hub answers when it is asked for its
// devices (reads), and snapshots of what its devices last reported. It also returns the state of a
// hub's devices at an instant. Package devicestate folds the states together with the events.
//
// # Reads
//
// The replica that serves a hub asks it for its list of devices, and then for each device:
//
//   - at once after an organization has added it, since it is connected then,
//   - after it has connected, so that what it reported before the log begins is known,
//   - after hub.events_skipped, since what was skipped may have changed anything,
//   - once its log has a new epoch, because it was reset (hub.log_reset),
//   - when the replica begins to serve the hub, unless the log has the answer since the last of
//     the cloud's events,
//   - when a snapshot finds the state in doubt,
//   - while something of its state is not certain (Config.InDoubt): within about a minute, and then
//     with pauses that double up to an hour.
//
// After device.added and device.updated it asks for that device alone, since channels may be new: a
// device that has just joined may tell them one after the other. If the hub does not answer, it is
// asked for all.
//
// The answer is stored in the hub's log, with the last event that the hub has taken into account,
// if it tells it, and with the end of the log before the hub was asked. So the fold can tell which
// events are newer than the answer, and which hubs must be asked is known again after a crash: what
// was not stored was not asked.
//
// # Traffic
//
// A hub has one request of this package at a time, with a pause between them, and is not asked
// again for all devices within MinInterval, unless its log has a new epoch, of which nothing is
// known. Single devices are asked for every few seconds at most. Workers bounds the hubs that are
// asked at the same time. A device that does not answer is tried again; after several such devices
// the rest is left out, and what was answered is stored as a part. A failed read is repeated with a
// pause that doubles up to maxBackoff, for as long as the hub is connected. An answer that is not
// valid is a fault of the hub. Until a read is complete, the state is not certain.
//
// # Snapshots
//
// A hub that has new events gets a snapshot once SnapshotEvery has passed since the last one, or
// after SnapshotEntries entries, so that a past state of a busy hub can be folded at once, and any
// other hub once half the retention has passed. So the log of each hub always has a snapshot
// that has not expired: the state of a hub that is silent or offline for long is kept as long as
// the hub has an organization. A snapshot is stored only if nothing has been stored since the log
// was folded: a read in between would be missing in a fold that begins with the snapshot.
//
// # State at an instant
//
// History folds the log from the last snapshot before an instant up to it. It knows everything that
// was reported at an instant if the log has a read or a snapshot from before it: for a hub with
// events, that is the whole retention but for its first quarter.
//
// # Goroutines
//
// Keeper.Run owns all goroutines: those that look for what is due and for hubs in doubt, and the
// workers. Commits are received in the goroutine of the journal, which only notes that a hub must
// be asked.
package statelog
