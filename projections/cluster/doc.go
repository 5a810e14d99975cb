// Package cluster runs a private PostgreSQL server: one that belongs to this process alone, listens
// on a Unix socket only, and is made, started, watched and stopped without an operator.
//
// What it promises:
//
//   - Start returns a server that answers, whatever the process before left behind: nothing, a
//     half-made directory, a stale lock file (also one whose process id belongs to another process
//     by now), a database that needs crash recovery, or a server that outlived the `kill -9` of its
//     parent. Such a server is shut down first. It is recognized by its working directory, never by
//     its process id alone.
//   - One process at a time has the directory. A second Start fails with ErrInUse and disturbs
//     nothing.
//   - A server that dies is started again until Stop. The URL stays the same.
//   - Stop ends the server in order, within a few seconds, and leaves no process and no socket
//     behind. If this process is killed, the kernel tells the server to shut down (on Linux); the
//     next Start does not depend on that.
//
// The directory holds one cluster a major version of PostgreSQL (`15/`, `17/`). Data of another
// major version cannot be opened, so binaries of another version begin with an empty cluster: the
// read models can always be built again.
//
// A Cluster owns two goroutines: the supervisor, and one that waits for the server's exit. Both
// have ended when Stop returns.
package cluster
