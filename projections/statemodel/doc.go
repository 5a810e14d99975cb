// Package statemodel keeps the last reported state of all devices in PostgreSQL, for lists over
// whole organizations that also have the hubs that are offline.
//
// The Projector follows the journals of all groups of shards from its checkpoints, folds the records
// with package devicestate, and writes the rows that have changed. Package readmodel has the
// queries: they join these tables with those of organizations, sites and hubs, of which this package
// knows nothing.
//
// # Promises
//
//   - Rows and checkpoint of a journal are committed together, so every record counts once.
//   - A channel's row is written at most once in FlushInterval, however often the channel reports.
//   - One process at a time projects, the holder of a lock. The others stand by. One of them takes
//     over within seconds. Each holder has a term, which every transaction checks.
//   - Nobody waits for the projector: it reads the journal, so appends and acks do not depend on it.
//     While the database is away, it goes on from its checkpoints when the database is back.
//   - Losing the database loses nothing that the journals have: the first start on an empty
//     database reads the journals from their oldest commits. They have all events of the retention,
//     and the reads and snapshots of state among them.
//   - A Copy is built in the same way beside the tables in use. Package rebuild replaces them with
//     it, or compares the two. Rows of hubs that were released may differ.
//   - If commits have expired before they were read, all hubs of the journal are in doubt until they
//     were asked again. If the journal is another one than that of the checkpoint, because the
//     installation was restored from a backup, the tables of its hubs are built again.
//   - An event that cannot be folded puts its hub in doubt, and is counted. Nothing stops the
//     projection.
//   - Rows belong to an epoch of the hub's log. Queries return only those of the hub's current
//     epoch, so no organization sees what a hub reported for another one. Rows of hubs that were
//     released are deleted minutes later, while the read models have the whole directory.
//
// # Memory
//
// The states of hubs that report are kept in memory, up to Config.MaxChannels. Those of other hubs
// are read from their rows when they report again.
//
// # Goroutines
//
// Projector.Run owns all goroutines and waits for them.
package statemodel
