// Package once makes requests with an Idempotency-Key run once: each is run once within the
// window of its key, however often it is sent, at any replica, at the same moment and across
// crashes.
//
// # Promises
//
//   - A key is reserved in the bucket "idempotency" before its request is run. The reservation has
//     an ID from which the request derives the IDs of what it makes. Run again after a crash, the
//     request makes the same things again. Work that does no harm if the key turns out to be taken
//     may begin while the reservation is stored (Request.Begin), and is withdrawn then.
//   - A final answer is stored before any caller gets it, and returned again for the window. After
//     any other outcome the same request may use the key again.
//   - The same key with another request is idempotency_conflict, whatever the outcome of the first.
//     Keys belong to an organization, across all its API keys.
//   - Of concurrent duplicates, over all replicas, one runs. The others wait for its answer. One of
//     them takes over when the process that runs is gone, or at its deadline.
//   - An organization has a bounded number of keys within the window; one more is rate_limited. The
//     keys are counted at the broker and, between two counts, by each replica: the bound is exact
//     to a sixteenth for each replica.
//
// A key is written without a read before, on the condition that it is new, as most keys are. The
// last 65,536 keys or so that this process has tried are read first (recentNames, 512 KB).
//
// While the bucket has no leader, a reservation waits for one for 15 s. Then it fails with
// service_unavailable, and the request was not run.
package once
