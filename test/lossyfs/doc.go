// Package lossyfs is a file system for tests of power cuts. It keeps everything in memory, in two
// versions: what programs see, and what a power cut would leave.
//
//   - What was written to a file, and its size, is kept once the file was synced (fsync, fdatasync,
//     or a write through O_SYNC).
//   - A name that was made, removed or moved is kept once its folder was synced. The first sync of
//     a new file keeps the name under which it was made too, as ext4, XFS, Btrfs and ZFS do, but
//     neither a later name nor the names of the folders above it, which is stricter than those.
//   - Mode, owner and times of a file are kept at once.
//
// CutPower stops the file system in the middle of whatever is going on, has the caller kill every
// process that uses it, drops what was not synced, and mounts what is left at the same place. A
// Loss says what "drops" means: everything that was not synced, or a random part of it, as a disk
// that had written some of its cache.
//
// A file system is mounted through /dev/fuse, which needs root. Everything under one Disk is
// guarded by one mutex; go-fuse owns the goroutines that serve it, and Unmount waits for them.
package lossyfs
