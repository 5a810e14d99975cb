// Package forward posts the events of an organization's feed to an HTTP service, the receiver.
//
// # Promises
//
//   - At least once: an event is posted until the receiver answers it with 2xx. After a restart at
//     a checkpoint, events that were delivered after the checkpoint are posted again, under the
//     same webhook-id.
//   - Order: for each hub there is one request under way at a time, and an event is first posted
//     after all earlier events of its hub were delivered or skipped. Hubs are independent: one
//     whose events the receiver does not take stops no other hub.
//   - Bounded memory: at most 10,000 events, and maxBytes bytes, wait for delivery. When
//     that many wait, the feed is not read further until some are delivered, for any hub.
//
// # Position
//
// Deliveries of different hubs overtake each other. The checkpoint is the newest position of the
// feed before which every event was delivered or skipped; see undelivered.
//
// # Goroutines
//
// Forwarder.Run owns all goroutines: one reads the feed, one writes checkpoints, one logs the
// progress, and one for each hub with undelivered events posts them. Run waits for them. When ctx
// ends, requests under way have some seconds to finish, and the last checkpoint is written after
// them.
package forward
