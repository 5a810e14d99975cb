// Package lease divides the groups of shards among the replicas that serve hubs. The shards of a
// group share a journal, which has one writer.
//
// # Leases
//
// A group has one holder at a time. Its lease is a key in the bucket `leases`, which the broker
// removes ten seconds after the last renewal, by the broker's clock. The holder renews the key
// every three seconds, and again soon after a try that failed. It stops serving the group when it
// could not renew the key for seven seconds, by its own clocks. A process that was suspended, or
// whose machine was, sees by its clocks that its lease is over before it continues its work. Two
// replicas can hold a group at the same time only if the broker loses a confirmed write; then the
// sequence that every append expects still lets only one of them write.
//
// # Shares
//
// Every replica also renews a key of its own. From these keys each replica computes by rendezvous
// hashing which groups are its share: when a replica comes or goes, only that replica's share
// moves. A holder hands over a group that belongs to another replica's share: it finishes its work,
// then deletes the key. A replica acquires each group of its share as soon as the group is free. A
// replica that restarts under its id acquires its own leases at once. A replica that is alone holds
// all groups within milliseconds.
//
// # Stale knowledge
//
// The keys are watched, but a watch can miss a deletion, and a broker that was cut off can miss an
// expiry. Therefore the replica also reads all keys from the bucket's leader: every ten seconds,
// every three while it lacks a group of its share, and at once after a write that found another
// revision than expected. A key that has had the same revision for eleven seconds, from when the
// replica first saw the revision to a read, is not renewed, and the replica may write over it. A
// leader that is cut off without knowing can answer a read with stale keys. That does no harm: a
// lease is acquired by a write that names the revision it replaces, and such a leader cannot store
// the write.
//
// # Goroutines
//
// Keeper.Run owns one goroutine for the replica's own key, one for the watch and one for each group
// that it holds, and waits for all of them. When Run's context ends, every group ends in order and
// its key is deleted, and so is the replica's own key.
package lease
