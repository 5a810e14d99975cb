// Package presence knows which hubs are connected. The broker says so, by its connect and
// disconnect events and its list of connections; what a hub claims does not count.
//
// A Watcher hears the broker for one shard and passes on Observations: this connection of that hub
// began, or ended. What it promises is that every observation is true, and that those of one broker
// come in the order in which they happened; not that none is missed. Therefore it compares the
// broker's list with the View at its start, every 30 s, and for a single hub on request: a
// connection that the list has is observed to have begun, one that it lacks is asked for by itself
// and then observed to have ended. A broker that does not exist any more has no connections.
//
// Step folds an observation into what is known of a hub and gives the transitions that follow, each
// of which is told once. In a takeover the broker reports the new connection before the old one's
// end: Step holds the new one until then, so that it is told as an end and a beginning.
//
// View is the presence bucket in memory, for every replica.
package presence
