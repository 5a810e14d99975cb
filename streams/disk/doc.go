// Package disk writes files that must survive a crash and a power cut, keeps two processes from
// using one directory or file at the same time, and keeps a reserve of a file system free.
//
// # Files
//
// Every file that is read after a crash is written by Write; no other package renames files into
// place. Write is atomic: a reader sees all of the former content or all of the new one. When Write
// has returned nil, the new content survives a power cut. An error leaves the former content.
//
// # Locks
//
// A Lock is the kernel's (flock): it ends with the process, however the process ends, so that a
// killed process leaves no stale lock. Owned is a file with a value in JSON that is written by Write
// and locked.
//
// # Reserve
//
// A Guard keeps a reserve of bytes and of files (inodes) free. Writers of data that can wait call
// Admit first, which returns an error while less than the reserve is free. The reserve is for writes
// that must go on: leases, presence, the database's log and checkpoints, sign-in, results of
// commands, and expiry, which writes before it frees space.
//
// A Guard measures the file system ten times a second. Between two measurements it counts admitted
// bytes as written, so that a fast writer cannot use up the reserve.
package disk
