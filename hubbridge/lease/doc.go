// Package lease divides the shards among the replicas that look after hubs.
//
// Each shard has one holder at a time. A lease is a key in the bucket `leases` that the broker takes away ten seconds after it was last
// renewed, by the broker's own clock; a holder renews it every three, and lets go of its shard by itself when it could not for seven. So two
// holders at a time need more than a replica that hangs for seconds; and then the expected sequence of every append still lets only
// one of them write.
//
// Every replica also keeps a key of its own, so that each knows who is there, and computes from it alone who should have which shard
// (rendezvous hashing: when a replica comes or goes only its own share moves). Who holds a shard that another replica should have lets go of
// it in an orderly way; who should have one takes it as soon as it is free. A replica that starts again under the id it had before takes its own
// leases at once; one that is alone has all shards within milliseconds.
package lease
