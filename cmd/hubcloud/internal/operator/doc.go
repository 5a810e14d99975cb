// Package operator implements what an operator does to a running installation: connecting to its
// broker, managing the inventory of hubs, credentials of taps, and restoring backups. It prints
// nothing; package cli does.
//
// A change is in force on every replica when its function returns. Replicas learn of a change from
// the directory log, and a Session waits until all of them have applied it.
package operator
