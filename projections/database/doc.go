// Package database connects to the read models' database and holds its advisory locks.
//
// A process that hangs or loses its network must not keep a lock that others wait for. So the owner
// of a connection that holds a lock calls EndWhenSilent, and runs statements on the connection
// several times within SilenceLimit. A process that wants the lock ends the session of a silent
// holder (Lock.Try). PostgreSQL 14 and later also end such a session themselves, a second later.
// Sessions that are silent within a transaction are ended too.
//
// Locks, settings and LISTEN belong to a session of the server. CheckSession finds a connection
// pooler that does not keep one for each connection.
//
// The package starts no goroutines and retries nothing.
package database
