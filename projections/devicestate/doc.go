// Package devicestate folds the log of a hub into the last reported state of the hub's devices.
//
// # What is folded
//
// Hub.Fold takes the entries of a log in order: events, reads and snapshots. A read is what the hub
// answered when it was asked for its devices. A snapshot is the state itself, so that a fold can
// begin in the middle of a log. Both are records of the log that readers of events do not see.
//
// Names and rooms that were set through the API are no part of the log: the caller lays them over.
//
// # Promises
//
//   - The package is pure. The same entries make the same state, on every replica and at any time.
//   - A state restored from a snapshot and folded over the rest of the log equals the state that
//     was folded from the beginning.
//   - An entry that was folded already is ignored, so a log may be repeated from any place.
//   - An event of another epoch begins a new, empty state: the hub was reset, or another
//     organization has it now. So does a read that was asked for after the last event.
//   - The order of the hub's log is the order of the state. Times of the hub's clock are kept and
//     never compared.
//   - A read has its place in that order from the hub: the number of the last event that the hub's
//     answer takes into account. Events with higher numbers are newer than the answer and the others
//     are part of it, wherever they stand in the log. Of a hub that does not tell the number, every
//     event that was not in the log when the hub was asked is newer than the answer.
//   - A report that raises an alarm (attention.Raises) counts even if an answer has what followed it.
//     What followed it is in the log too.
//   - An alarm of an alarm channel stands, whatever else the channel reports, until the channel
//     reports its end (attention.Stand) or is removed. A read shows the last report only: it ends what
//     that report ends. What hub.events_skipped stands for ends nothing.
//   - The state is certain once a complete read takes into account what put it in doubt: a log
//     without its beginning, and hub.events_skipped. A single device is in doubt after it was added,
//     and after an event about a channel of which only the event is known.
//
// # What events do not tell
//
// Hubs send no event when they abandon a command, and none for a report of an unchanged value. So
// a channel stays pending until the next report or read, and ObservedAt may be earlier than at the
// hub.
package devicestate
