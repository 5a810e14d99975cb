// Package database connects to the read models' database and holds its advisory locks.
//
// A process that hangs or loses its network must not keep a lock that others wait for. So every
// connection that holds a lock calls EndWhenSilent, and its owner runs a statement on it several
// times within SilenceLimit. A process that wants the lock ends the session of a silent holder
// (Lock.Try); newer servers also end it themselves, after a second more. No session may stay silent
// within a transaction.
//
// The package starts no goroutines. Nothing here retries.
package database
