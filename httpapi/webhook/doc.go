// Package webhook posts events to an HTTP service, the receiver, as Standard Webhooks defines it
// (https://www.standardwebhooks.com): a message has an id, which stays the same when the message is
// posted again, and a signature for each secret. A Receiver posts a message once. A Forwarder posts
// the events of a feed:
//
//   - At least once: an event is posted until the receiver answers it with 2xx. After a restart at
//     a saved position, events that were delivered after it are posted again, under the same
//     webhook-id.
//   - Order: for each hub there is one request under way at a time, and an event is first posted
//     after all earlier events of its hub were delivered or skipped. Hubs are independent: one
//     whose events the receiver does not take stops no other hub.
//   - Bounded memory: at most 10,000 events, and maxBytes bytes, wait for delivery. When
//     that many wait, the feed is not read further until some are delivered, for any hub.
//
// # Position
//
// Deliveries of different hubs overtake each other. The saved position is the newest one of the
// feed before which every event was delivered or skipped.
//
// # Goroutines
//
// Forwarder.Run owns all goroutines: one reads the feed, one saves positions, and one for each hub
// with undelivered events posts them. Run waits for them. When ctx ends, requests under way have
// some seconds to finish, and the last position is saved after them.
package webhook
