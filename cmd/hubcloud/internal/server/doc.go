// Package server runs one replica of the hub cloud: the broker or a connection to one, the read
// models, the bridge that serves hubs, the API and the portal, depending on the replica's roles.
// Run starts the replica, waits until its context ends or a part fails, and stops it.
//
// Start starts four layers, each on top of the former one and with all that it has: infrastructure
// (data directory, broker, database), read models, hub link, HTTP. A start retries while external
// servers are not reachable, up to Config.StartTimeout, and waits without limit while the disk is
// full. The server is ready once every part is up, the read models contain the directory, and
// endpoints.json is written.
//
// What is started says in which step of the stop it ends: a loop with process.run, anything else
// with process.atStop. The steps are declared in their order. A loop that returns earlier ends Run
// with an error that has the loop's name. The stop takes at most ten seconds, and what it cannot
// finish is as durable as after a kill.
package server
