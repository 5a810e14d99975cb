// Package readmodel answers lists and single reads from the read models.
//
// What it promises:
//
//   - Every query is scoped by organization: what belongs to another organization is not found.
//   - Queries fail with projections.ErrBuilding until the read models have been complete once.
//   - A read waits up to 15 s for a database that is away or restarts, and fails with
//     service_unavailable then.
//   - Store.WaitFor returns once the read models have a sequence of the directory, whichever
//     process projects it. It cannot miss the moment: it listens first, then reads the checkpoint,
//     and reads it again every second. WaitFor fails at once while the projection is stopped.
//
// A Store owns one goroutine, which listens for commits; Close ends it and waits for it. The Store
// never writes to the read models.
package readmodel
