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
// # Position of a Forwarder
//
// Deliveries of different hubs overtake each other. The saved position is the newest one of the
// feed before which every event was delivered or skipped.
//
// # Webhooks of organizations
//
// A Deliverer posts the events of organizations to their webhooks.
//
//   - Order: a webhook has one request under way at a time, and its events come in the order of the
//     organization's feed, so those of a hub in the order of its log.
//   - At least once: only a 2xx moves the position of a webhook. It is stored within a second. A
//     killed process repeats what was delivered since; no event is left out.
//   - A request that fails is posted again with the same webhook-id and body. The pause doubles
//     from a second to ten minutes, or is as long as the receiver asks for. An event is tried until
//     it is older than the retention. Then the next request begins with an event feed.gap, whose
//     hub_id is null, and goes on with the oldest event that is kept.
//   - A webhook that fails for domain.WebhookDisableAfter, or whose receiver answers 410, is
//     disabled, and the owners and admins are mailed. When it is enabled, it goes on from its
//     position.
//   - One replica delivers for a webhook: the holder of the lease of its part (Deliverer.Serve).
//     Before each request it checks that it still holds the lease, and a position is written on
//     condition of the one that was read.
//   - Webhooks wait for no other one: each has a goroutine, a request of at most 32 KiB of events in
//     memory while it fails, and a place in a shares.Pool while it posts.
//   - Nothing connects to an address of this machine or network (Guard), unless the operator allows
//     it. The address is checked when a connection is made, after every resolution of the name.
//     Redirects are not followed.
//
// # Secrets of webhooks
//
// A signature needs the secret itself. So secrets are stored encrypted (Vault), with a key that is
// derived from the key of the installation's certificate authority: every replica with the role api
// has it, operators keep it anyway, and the broker does not have it. A secret is shown when it is
// made, and is in no log. An installation that gets another authority cannot read the
// secrets: webhooks fail, with that reason, until their secrets are rotated.
//
// # Goroutines
//
// Forwarder.Run owns all goroutines: one reads the feed, one saves positions, and one for each hub
// with undelivered events posts them. Run waits for them. When ctx ends, requests under way have
// some seconds to finish, and the last position is saved after them.
//
// Deliverer.Serve owns a goroutine for each enabled webhook of its part, and waits for them. Follow,
// which the caller owns, knows the webhooks.
package webhook
