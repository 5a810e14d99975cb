// Package identity decides who is a hub: the installation's certificate authority, enrolment (how a
// hub gets its certificate), the broker's auth callout (whether a connection is the hub that it
// says), and the cutting of connections.
//
// # Promises
//
//   - A hub has one current certificate, the one that the directory says. Every connection is
//     checked against the directory as it is at that moment, never against a copy: a certificate
//     that was revoked or replaced before a connection was refused on every replica. If the
//     directory cannot be read, the connection is refused.
//   - A connection gets into the account of the hub's own shard, with the hub's own topics, over
//     MQTT, and nothing else. Name of the certificate, MQTT client id and a hub of the inventory
//     must be the same.
//   - Whoever does not know a hub's secret learns nothing from enrolment: a serial that nobody has
//     and a wrong secret get the same answer after the same time.
//   - A blocked hub neither enrols nor connects: enrolment answers as for an unknown serial. A
//     secret that an operator has replaced enrols nobody, also not in a request that was under way.
//   - One hub is issued a bounded number of certificates, and connects a bounded number of times.
//   - A hub's private key never gets here, and the authority's key never leaves its file.
//   - Revoking comes first and cutting second: a connection that was let in just before the
//     revocation is found and cut.
package identity
