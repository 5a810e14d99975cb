// Package lease divides the shards among the replicas that look after hubs.
//
// Each shard has one holder at a time. A lease is a key in the bucket `leases` that the broker
// takes away ten seconds after it was last renewed, by the broker's own clock; a holder renews it
// every three, and lets go of its shard by itself when it could not for seven. A process that has
// stood still knows by its own clock that its lease is over, before anything else in it runs on. So
// two holders at a time need a broker that loses what it has confirmed; and then the expected
// sequence of every append still lets only one of them write.
//
// Every replica also keeps a key of its own, so that each knows who is there, and computes from it
// alone who should have which shard (rendezvous hashing: when a replica comes or goes only its own
// share moves). Who holds a shard that another replica should have lets go of it in an orderly way;
// who should have one takes it as soon as it is free. A replica that starts again under the id it
// had before takes its own leases at once; one that is alone has all shards within milliseconds.
//
// # What is known may be wrong
//
// The keys are watched, and a watch can miss that one has gone; a broker that was cut off can miss
// that a key's time is over. Nothing rests on either alone: the leader of the bucket is asked for
// all keys every ten seconds, every three while this replica lacks a shard that it should have, and
// at once when a lease was refused because its key is another than was known. A key that had the
// same revision for eleven seconds, from when it was first heard of to a reading, is not renewed by
// anybody, and may be taken. A stale answer (of a leader that is cut off and does not know it yet)
// does no harm: a lease is taken by a write that names the revision it replaces, and such a leader
// cannot store it. What keeps a replica from a shard for longer than five seconds is logged every
// ten.
package lease
