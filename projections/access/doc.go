// Package access keeps in memory what decides whether a request is let in: the API keys in force,
// the members of organizations, and which organization has which hub and where its event log
// begins.
//
// Every replica has an Index of its own, some 200 bytes a hub. It loads the read models if it can
// and follows the directory itself, a few milliseconds behind, so it needs the database only to
// start faster. A key that is revoked, or a member who is removed, is out on each replica as soon
// as its Index has the event: channels of the key and of the membership are closed then, which ends
// open streams.
//
// Unlike a projection, the Index does not stop at an event that it cannot read: what comes after
// must be in force. If the event is about an API key, it might be a revocation, so the key is
// suspended until an operator skips the event or a program runs that can read it.
//
// Index.Run owns no goroutine but its caller's.
package access
