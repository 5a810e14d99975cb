// Package cluster runs a private PostgreSQL server: one that belongs to this process alone, listens
// on a Unix socket only, and is made, started, watched and stopped without an operator.
//
// Promises:
//
//   - Start gives a server that answers, on whatever the process before left behind: nothing at
//     all, a half-made directory, a stale lock file in the data directory or beside the socket
//     (also one whose process id is somebody else's by now), a database that needs crash recovery,
//     or a server that outlived its parent's `kill -9`. Such a server is shut down first; it is
//     told apart by its working directory, never by its process id alone.
//   - One process at a time has the directory: a second Start on it fails with ErrInUse and
//     disturbs nothing.
//   - A server that dies is started again, for as long as the Cluster is not stopped. The URL stays
//     the same.
//   - Stop ends the server in order, within a few seconds, and leaves no process and no socket
//     behind. When this process is killed, the kernel tells the server to shut down (on Linux); the
//     take-over at the next Start does not depend on it.
//
// The directory holds one cluster a major version of PostgreSQL (`15/`, `17/`): data of another
// major version cannot be opened, and what is kept here can always be built anew, so binaries of
// another version simply begin with an empty cluster.
//
// A Cluster owns two goroutines: the supervisor and the one that waits for the server's exit. Both
// have ended when Stop returns.
package cluster
