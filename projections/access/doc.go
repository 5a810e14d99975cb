// Package access keeps in memory what authorization needs: the API keys in force, the members of
// organizations, and for each hub its organization and the epoch of its event log.
//
// Every replica has an Index of its own, of some 200 bytes a hub. The Index follows the directory
// itself, a few milliseconds behind. It loads the read models first only to start faster, so it
// also works without the database. When the Index applies the event that revokes a key or removes a
// member, it closes a channel of the key or membership, which ends open streams. Likewise it closes
// a channel of an organization that gets, moves or loses a hub.
//
// Unlike a projection, the Index does not stop at an event that it cannot read, because later
// events may revoke access. An unreadable event about an API key might be a revocation, so the key
// is suspended until an operator skips the event or a program starts that can read it.
//
// The package starts no goroutines.
package access
