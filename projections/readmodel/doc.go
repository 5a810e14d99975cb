// Package readmodel answers lists and single reads from the read models.
//
// What it promises:
//
//   - Every query is for one organization. Objects of other organizations are not found.
//   - Queries fail with projections.ErrBuilding until the first build of the read models is
//     complete.
//   - A read waits up to 15 s for a database that is away or restarts, and then fails with
//     service_unavailable.
//   - Store.WaitFor returns once the read models have an event of the directory, in whichever
//     process the projector runs. It misses no commit: the Store listens for notifications before
//     it reads the checkpoint, and reads the checkpoint again every second. WaitFor fails at once
//     while the projection is stopped.
//
// A Store owns one goroutine, which listens for commits; Close ends it and waits for it. The Store
// never writes to the read models.
package readmodel
