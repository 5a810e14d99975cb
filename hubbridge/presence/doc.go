// Package presence determines which hubs are connected, from the broker's connect and disconnect
// events and its list of connections. It trusts no claim of a hub.
//
// # Observations
//
// A Watcher follows the connections of one shard and reports Observations: a connection of a hub
// has begun, or has ended. It reports none that did not happen. The observations of the connections
// to one server come in their order, and may repeat.
//
// Events of the broker can be lost. Therefore the watcher compares the broker's lists of
// connections with the View when it starts, every 30 s, after it has lost the broker, for a while
// after the servers of a cluster have lost or found each other, and for a single hub on request. It
// observes the beginning of each connection on a list. A connection that no list has is looked up
// by itself first, because a list that comes in pages can miss it; if the server does not have the
// connection, the watcher observes the end.
//
// A server of a cluster that the others cannot reach may have ended, or be cut off with its hubs,
// which it keeps. Its hubs stay online for 25 s; then the watcher observes the end of their
// connections. If the server is back and lists such a connection twice, the connection is open, and
// the hub is online again.
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
