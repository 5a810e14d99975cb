// Package cluster runs a private PostgreSQL server. Only this process uses the server, which
// listens on a Unix socket only. The package creates, starts, supervises and stops it.
//
// What it promises:
//
//   - Start returns a server that accepts connections, whatever an earlier process has left:
//     nothing, an incomplete directory, a stale lock file (even if its process id belongs to
//     another process by now), a database that needs crash recovery, or a server that is still
//     running because its parent was killed. Start shuts such a server down first. It identifies it
//     by its working directory, never by its process id alone.
//   - One process at a time uses the directory. A second Start fails with ErrInUse and changes
//     nothing.
//   - A server that dies is started again until Stop. The URL stays the same.
//   - Stop shuts the server down within a few seconds and leaves no process and no socket. If this
//     process is killed, the kernel signals the server to shut down (on Linux only); the next Start
//     does not depend on that.
//
// The directory holds one cluster for each major version of PostgreSQL (`15/`, `17/`). A server
// cannot open the data of another major version, so binaries of another version start with an empty
// cluster; the read models are then built again.
//
// A Cluster owns two goroutines: the supervisor, and one that waits for the server's exit. Both
// have ended when Stop returns.
package cluster
