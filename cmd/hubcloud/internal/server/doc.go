// Package server runs one replica of the hub cloud: the broker or a connection to one, the read
// models, the bridge that serves hubs, the API and the portal, depending on the replica's roles.
// Run starts the replica, waits until its context ends or a part fails, and stops it.
//
// Start starts the parts in four steps, each on top of the former one: infrastructure (data
// directory, broker, database), read models, hub link, HTTP. A start retries while external
// servers are not reachable, up to Config.StartTimeout, and waits without limit while the disk is
// full. The server is ready once every part is up, the read models contain the directory, and
// endpoints.json is written.
//
// Every goroutine of the server belongs to a group. A group's loops run until the group is stopped;
// a loop that returns earlier ends Run with an error that has the loop's name. Stop stops the
// groups in the reverse order of the start and waits for their loops; it takes at most ten seconds.
// Whatever a stop cannot finish is as durable as after a kill.
package server
