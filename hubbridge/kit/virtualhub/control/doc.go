// Package control lets another process of the same user make running virtual hubs misbehave.
//
//   - Serve offers the virtual hubs of a process: it listens on a port of the loopback interface
//     and writes a file with the address, a secret and the process id into a folder of the user's.
//     The file is readable by its owner only and is removed when Serve returns.
//   - Find returns the processes that serve hubs. It removes the files of processes that were
//     killed.
//   - Process.Do runs an Action on a hub. Its errors are *ActionError if the action itself is
//     wrong, for instance because the hub has no such device.
package control
