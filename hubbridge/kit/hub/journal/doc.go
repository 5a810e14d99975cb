// Package journal keeps what a hub needs over a restart: its numbered events until they are
// acknowledged, and a small table of entries (its devices and the commands that it has answered). A
// Change of both is stored as a whole or not at all.
//
// On disk, the journal is one append-only file of records, each with its length and a CRC-32C of both.
// Without a directory it is in memory.
//
//   - A log has an id. Numbers rise by one and are used once per log, even after kill -9. After a
//     power cut too, if the caller calls Sync before it lets another party see a number.
//   - Open removes a last record that a crash left incomplete: the Commit of that record had not
//     returned, or a power cut came before its Sync. Any other damage, also of a length or of the
//     last record, is ErrCorrupt, because the numbers of the damaged records may have been used.
//   - The journal keeps the newest events, at most Capacity. Acknowledged events are dropped.
//     Events that are dropped for lack of capacity show in Bounds.
//   - Once most of the file is history, a new file replaces it.
//   - One journal at a time uses a directory (ErrInUse). A Journal is safe for concurrent use.
package journal
