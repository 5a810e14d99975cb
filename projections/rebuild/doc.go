// Package rebuild builds read models from the streams beside those in use, while reads and writes
// go on: to replace those in use (Builder.Install, Builder.Rebuild), or to compare with them
// (Builder.Verify).
//
// A build folds the directory's events into rows, copies the rows into tables without keys and
// indexes, adds those, and then follows both streams. To replace the read models in use, it renames
// both schemas in one transaction. The switch relies on this:
//
//   - A projector's transaction begins with its row of the table checkpoints, and a transaction
//     that reads several tables begins with that table too. The switch locks the table first, so no
//     transaction is half in one schema and half in the other.
//   - While the table is locked, the new read models catch up with the old ones. So an event that
//     readers have seen does not disappear.
//   - Sessions find tables by the schema's name, which stays the same, as do the channel of
//     notifications and the locks. PostgreSQL plans prepared statements again after a rename.
//   - A build holds the schema's BuildLock, and switches on the connection that holds it. If the
//     lock may be lost, the build ends with an error.
//   - Each build has a schema with a name of its own. A process that has lost the lock can write
//     only there, and the next build drops the schema.
//
// A build that is interrupted leaves the read models in use unchanged. While an operator has
// stopped a projection, a build does not switch; it waits. Events that operators have skipped are
// skipped here too. Any other event that cannot be applied fails the build with a
// *projections.StoppedError.
//
// # Last reported states
//
// RebuildStates and VerifyStates do the same for the tables of package statemodel: a
// statemodel.Copy follows the journals beside the tables in use. The switch takes the projector's
// term over, which waits for its transaction under way and ends it at the next one, lets the copy
// catch up, and renames both schemas. The projector then goes on from the copy's positions. A
// statement of a reader may find one table before the switch and another one after it: both have
// the same commits. A comparison brings the copy to exactly the commits that a transaction sees in
// the tables in use.
//
// All goroutines end before the method that started them returns.
package rebuild
