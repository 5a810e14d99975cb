// Package presence determines which hubs are connected, from the broker's connect and disconnect
// events and its list of connections. It trusts no claim of a hub.
//
// # Observations
//
// A Watcher follows the connections of one shard and reports Observations: a connection of a hub
// has begun, or has ended. Every observation is true, and the observations about one broker come in
// the order in which they happened. Observations may repeat, and events of the broker may be
// missed. Therefore the watcher compares the broker's list with the View when it starts, every 30
// s, after it has lost the broker, and for a single hub on request. A connection on the list is
// observed to have begun. A connection missing from the list is looked up by itself first, because
// a list that comes in pages can miss one; then it is observed to have ended. All connections of a
// broker that no longer exists have ended.
//
// # Transitions
//
// Step computes from the recorded presence of a hub and an observation which transitions to
// record, each once. When a connection takes over from another, the broker reports the new one
// before the end of the old one. Step keeps the new connection as pending until the old one has
// ended, so that the takeover is recorded as an end and a beginning.
//
// # The view
//
// A View holds the presence bucket in memory, on every replica. Package ingest writes the bucket.
//
// Watcher.Run and View.Run own all goroutines of this package's types. A lost broker ends neither:
// both continue when the connection is back.
package presence
