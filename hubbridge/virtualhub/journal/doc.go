// Package journal is what a hub keeps over a restart: its numbered events until they are
// acknowledged, and a small table of entries (its devices, the commands that it has answered). Both
// change together: a Change is kept wholly or not at all.
//
// On disk it is one append-only file of frames, each with its length and a CRC-32C; without a
// directory it is in memory alone.
//
//   - A log has an identity. Numbers rise by one and are never given twice within it, also after
//     kill -9 at any instant. After a power cut too, as long as the caller calls Sync before it
//     lets anybody know of a number.
//   - A last frame that was torn by a crash is cut off on Open: nobody was told of it. Damage
//     before the end is ErrCorrupt: what stood there may have been told, and must not be told
//     differently.
//   - It holds the newest events, Capacity of them at most. Acknowledged events are let go; events
//     that are dropped for want of room show in Bounds.
//   - The file is written anew, beside the old one and then in its place, once it is mostly
//     history.
//   - A directory is in use by one journal at a time (ErrInUse). A Journal is safe for concurrent
//     use.
package journal
