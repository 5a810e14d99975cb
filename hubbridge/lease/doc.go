// Package lease divides the groups of shards among the replicas that serve hubs. The shards of a
// group share a journal, which has one writer.
//
// # Leases
//
// A group has one holder at a time. Its lease is a key in the bucket `leases`, which the holder
// renews every second, and again soon after a try that failed. For three seconds after a renewal, by
// its own clocks, the lease is certainly held (Term.Held): nobody acquires it earlier than four
// seconds after he has seen its last renewal. A process that was suspended, or whose machine was,
// sees by its clocks that its lease is over before it continues its work.
//
// Run ends a group when its lease is not certain any more. While the bucket has no leader, which
// takes a cluster four to nine seconds to elect, that would end all groups, although nobody can take
// them over. RunFenced therefore serves a group on until another replica has written its key. Until
// the holder finds that out, both may serve it, so it is for groups whose work is safe then: package
// hubbridge says why its own is.
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
// revision than expected or if a key seems not to be renewed. A key that has had the same revision for
// four seconds, from when the replica first saw the revision to a read, is not renewed, and the
// replica may write over it. Time in which the bucket could not be written does not count against a
// key: the reader must have renewed its own for two seconds without a failure. The broker removes a
// key after 30 s without a renewal, by its own clock. A leader that is cut off without knowing can
// answer a read with stale keys. That does no harm: a lease is acquired by a write that names the
// revision it replaces, and such a leader cannot store the write.
//
// # Goroutines
//
// Keeper.Run owns one goroutine for the replica's own key, one for the watch and one for each group
// that it holds, and waits for all of them. When Run's context ends, every group ends in order and
// its key is deleted, and so is the replica's own key.
package lease
