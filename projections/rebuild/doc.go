// Package rebuild has an operator's commands for the read models of a running service, and the
// builds of read models beside those in use, while reads and writes go on: to replace those in use
// (Control.Install, Control.Rebuild), or to compare with them (Control.Verify).
//
// A Control shows the state of the projections, stops and resumes them, makes one skip an event,
// rebuilds and verifies the read models, and drops those that are no longer used. Once Control.Stop
// has returned, no process writes to the stopped projections until Control.Resume.
//
// # Builds
//
// A build is the engine of package projector on another schema. It first folds the directory's
// events into rows, copies the rows into tables without keys and indexes, and adds those; then it
// follows all streams. To replace the read models in use, it renames both schemas in one
// transaction. The switch relies on this:
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
// All goroutines end before the method that started them returns.
package rebuild
