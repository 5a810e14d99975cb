// Package replicas is what the replicas of the service know of each other and of the broker:
// whether a replica may act by its view of the directory (Freshness), when every replica has
// applied an event of the directory (Barrier), and whether a replica reaches the broker (Reach).
//
// A revoked key must stop working everywhere, also at a replica that is slow or cut off. Three
// rules ensure that:
//
//   - A replica answers requests by its view of the directory only while the view was confirmed
//     within the last second by a leader of the DIRECTORY stream (Freshness). A request that comes
//     later waits for a confirmation.
//   - A replica is registered before it confirms its view for the first time: it keeps a heartbeat
//     in the bucket `replicas`, which expires after streams.HeartbeatTTL (Barrier.Serve).
//   - Barrier.Wait returns nil once every registered replica has applied the event, or has been
//     silent for so long that it cannot act by an older view any more: 1.2 s, in a cluster 4.5 s.
//
// So a revocation is in force everywhere when Wait returns. A replica that gets no processor makes
// Wait, and its own requests, take longer; neither fails. The replica with the broker inside (the
// id Embedded) cannot be cut off: it confirms nothing, and Wait waits for it however long it takes.
//
// A replica that is cut off fails its requests with service_unavailable (Reach, Freshness.Lost) and
// ends its open event streams, within three seconds during which it ran.
//
// Barrier.Serve, Freshness.Run and Reach.Run block until their context ends and return its error.
// They wait for the goroutines that they start.
package replicas
