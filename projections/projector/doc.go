// Package projector is the engine that applies the streams to the read models: the log of the
// directory, the presence bucket, and the journals of the hub logs.
//
// A Source reads a stream and turns its entries into statements. A writer commits the entries in
// order, batch by batch. The Projector runs the sources on the tables in use; package rebuild runs
// the same sources on tables beside them (Sources.Copies).
//
// What it promises:
//
//   - Each projection applies its stream in order from its checkpoint. Rows and checkpoint are
//     committed in one transaction, which fails with errMoved if another process has moved the
//     checkpoint. So every entry is applied once, even if several processes project, and the rows
//     do not depend on how the entries are divided into batches.
//   - One process at a time projects: the one that holds the ProjectorLock. The others stand by
//     (see schema.Leadership). Each projector has a term, which every transaction checks: once the
//     next projector has taken over, the transactions of the previous one fail, and it stands by
//     again.
//   - An event that cannot be read or applied stops its projection; everything before the event is
//     committed. Status, Ready and the metrics show the event. The projection tries it again every
//     10 s, and within a second after an operator has skipped it. The other projections go on.
//   - If the database or the broker is away, the projections go on from their checkpoints when it
//     is back.
//   - When a program with a new definition of the read models starts on a long stream, the read
//     models are first built in bulk (Config.BuildFirst).
//
// # Last reported states
//
// The projection schema.Devices keeps the last reported state of all devices, for lists over whole
// organizations that also have the hubs that are offline. It folds the records of each journal with
// package devicestate (devicesSource), and differs from the others:
//
//   - A channel's row is written at most once in Config.FlushInterval, however often the channel
//     reports. A projection that is behind writes earlier.
//   - Entries are folded when they come. Hubs are written in turns (shares.Turns), each as a whole:
//     first the ones that report an alarm, then by organization and hub whoever has had least. A
//     round ends with about Config.MaxRows rows; the other hubs wait for the next one, in memory.
//     So a flood of one hub holds up others for one round. The checkpoint stays before the first
//     entry that is not written; hubs may be ahead of it, and ignore what they have already.
//   - Of an organization about Config.OrgChannels channels are kept: the fold leaves further ones out.
//     They are counted as they are added, and in the tables every SweepInterval.
//   - A commit announces the hubs of which something may need attention (schema.AnnounceAttention).
//   - Nobody waits for it: appends and acks do not depend on it, and neither does readiness.
//   - An event that cannot be folded puts its hub in doubt, and is counted. Nothing stops the
//     projection.
//   - If commits have expired before they were read, all hubs of the journal are in doubt until
//     they were asked again. If the journal is another one than the checkpoint's, because the
//     installation was restored from a backup, the states of its hubs are built again.
//   - Rows belong to an epoch of the hub's log. Queries return only rows of the hub's current
//     epoch, so no organization sees what a hub reported for another one. Rows of hubs that were
//     released are deleted minutes later, while the read models have the whole directory.
//   - The states of hubs that report are kept in memory, up to Config.MaxChannels. The states of
//     other hubs are read from their rows when they report again.
//
// Projector.Run owns all goroutines and waits for them.
package projector
