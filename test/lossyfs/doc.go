// Package lossyfs is a file system for tests of power cuts. It keeps everything in memory, in two
// versions: what programs see, and what a power cut would leave.
//
//   - Written content and the size of a file are kept once the file was synced (fsync, fdatasync,
//     or a write through O_SYNC).
//   - A created, removed or moved name is kept once its folder was synced. The first sync of a new
//     file also keeps the name under which the file was created, as on ext4, XFS, Btrfs and ZFS.
//     Stricter than on those, it keeps neither later names nor the names of parent folders.
//   - Mode, owner and times of a file are kept at once.
//
// CutPower stops the file system in the middle of any activity, has the caller kill every process
// that uses it, drops unsynced changes and mounts what is left at the same place. A Loss selects
// what is dropped: all unsynced changes, or a random part of them, as on a disk that has written
// part of its cache.
//
// The file system is mounted through /dev/fuse, which needs root. One mutex guards everything under
// a Disk. go-fuse owns the goroutines that serve it; unmounting waits for them.
package lossyfs
