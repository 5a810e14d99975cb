// Package identity decides which clients are hubs. It has the installation's certificate authority,
// enrolment (how a hub gets its certificate), the broker's auth callout (whether a connection
// belongs to the hub that it claims to be), and the closing of hubs' connections.
//
// # Promises
//
//   - A hub has one current certificate, the one in the directory. Every connection is checked
//     against the directory's current state, never against a copy. Once a certificate has been
//     revoked or replaced, every replica rejects new connections with it. Connections are rejected
//     while the directory cannot be read.
//   - A connection is admitted to the account of the hub's shard, over MQTT, with the hub's own
//     topics only. The certificate's name, the MQTT client id and the id of a hub in the inventory
//     must be the same.
//   - Enrolment reveals nothing to a client without the hub's secret: an unknown serial and a wrong
//     secret get the same response after the same time.
//   - A blocked hub can neither enrol nor connect. Enrolment responds as for an unknown serial. A
//     replaced secret is rejected, also in a request that has already started.
//   - The number of certificates issued to one hub, and of its connections, is limited per time.
//   - A client that is rejected again and again costs little (Rejections), and keeps nobody out who is
//     admitted, at its address or at another one.
//   - A hub's private key is never sent here, and the authority's key never leaves its file.
//   - Hubs are sent away, within three seconds, from a server that reaches no majority of its cluster,
//     if a replica reaches it: it stores nothing.
//   - Connections are closed after the revocation, so a connection admitted just before is closed
//     too.
package identity
