// Package hubbridge is the cloud's end of the hub link: what hubs say becomes their event logs,
// what the broker says about their connections becomes their presence, and requests to hubs get
// their answers.
//
// A Bridge looks after the shards whose leases its replica holds; the rooms beside this one hold
// the parts:
//
//	codec      decodes the messages of hubs: hellos, events, answers
//	ingest     stores events and presence, hub by hub, exactly once
//	presence   hears the broker about connections; the presence of all hubs in memory
//	lease      divides the shards among replicas
//	rpc        calls the methods of hubs, from any replica
//	commands   sends commands to hubs, each run once
//	idempotency  runs requests with an Idempotency-Key once
//	identity   certificates of hubs, and who may connect
//	bucket     records in key-value buckets, with their revision
//	protocol   the messages of the hub protocol
//	virtualhub a hub in software, which shares nothing with the rest but protocol
//
// # Order of a shard's life
//
// When the lease is taken, the shard hears the broker and its hubs first and then compares the
// broker's list of connections with the presence bucket, so that nothing falls in between. When the
// lease is to be handed over, or the bridge ends, it receives nothing more, finishes what it has,
// writes the ledgers, and only then gives the lease up. A lease that is lost ends it at once; what
// it had not acknowledged, the hubs send again to the next holder.
package hubbridge
