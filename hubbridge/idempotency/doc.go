// Package idempotency remembers what became of requests that were sent with an Idempotency-Key, so
// that each is done once within the window, however often it is sent, at whatever replica, also at
// the same moment and over crashes.
//
// # Promises
//
//   - A key is reserved in the bucket `idempotency` before anything is done. The reservation has an
//     id from which whatever is done derives its own: done again after a crash, it is the same
//     thing that is done.
//   - What settled the matter is stored before anybody hears it, and answered again for the window.
//     Anything else leaves the key to the same request.
//   - The same key for another request is idempotency_conflict, whatever became of the first. Keys
//     belong to an organization, over all its API keys.
//   - Of several that come at once, over all replicas, one is done. The others wait for it, and
//     take over when its process is gone or its time is over.
//   - An organization has a bounded number of keys within the window; one more is rate_limited. The
//     bound is counted at the broker, and by each replica in between: it is exact within a
//     sixteenth a replica.
//
// While the bucket has no leader, a reservation waits for one for 15 s. Then the answer is
// service_unavailable: nothing was done.
package idempotency
