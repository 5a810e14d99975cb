// Package replicas is what the replicas of the service know of each other and of the broker:
// whether a replica may act by its view of the directory (Freshness), when every replica has
// applied an event of the directory (Barrier), and whether a replica reaches the broker (Reach).
//
// A revoked key must stop working everywhere, also at a replica that is cut off. Three rules ensure
// that:
//
//   - A replica answers requests by its view of the directory only while the view was confirmed
//     within the last second by a leader of the DIRECTORY stream (Freshness).
//   - A replica is registered before it confirms its view for the first time: it keeps a heartbeat
//     in the bucket `replicas`, which expires after streams.HeartbeatTTL (Barrier.Serve).
//   - Barrier.Wait returns nil once every registered replica has applied the event, or has been
//     silent for so long that it cannot act by an older view any more.
//
// Reach makes the second half of the first rule fast: a replica that is cut off stops waiting for a
// confirmation, and Freshness.Lost ends its open event streams within three seconds.
//
// Barrier.Serve, Freshness.Run and Reach.Run block until their context ends and return its error.
// They wait for the goroutines that they start.
package replicas
