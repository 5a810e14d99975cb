//go:build linux

package lossyfs

import (
	"cmp"
	"slices"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// attributesValid is how long the kernel may cache attributes. Nothing else changes them.
const attributesValid = time.Hour

// listed is one name in the listing of an open folder.
type listed struct {
	name string
	node *node
}

// operations serves the kernel's requests from the tree.
type operations struct {
	fuse.RawFileSystem
	disk *Disk
}

// on calls do with the node of a request while holding the file system's mutex.
func (o *operations) on(id uint64, do func(t *tree, n *node) fuse.Status) fuse.Status {
	if err := o.disk.enter(); err != nil {
		return fuse.EIO
	}
	defer o.disk.mu.Unlock()
	n := o.disk.tree.nodes[id]
	if n == nil {
		return fuse.Status(syscall.ESTALE)
	}
	return do(o.disk.tree, n)
}

// inDir is on for a name in a folder. child is nil if the name does not exist.
func (o *operations) inDir(
	id uint64, name string, do func(t *tree, dir, child *node) fuse.Status,
) fuse.Status {
	return o.on(id, func(t *tree, dir *node) fuse.Status {
		if !dir.isDir() {
			return fuse.ENOTDIR
		}
		return do(t, dir, dir.entries[name])
	})
}

func fillAttr(n *node, out *fuse.Attr) {
	out.Ino, out.Mode, out.Uid, out.Gid = n.id, n.mode, n.uid, n.gid
	out.Nlink, out.Blksize = uint32(n.names), pageSize
	out.Size = uint64(n.file.now.size)
	if n.target != "" {
		out.Size = uint64(len(n.target))
	}
	out.Blocks = uint64(len(n.file.now.pages)) * pageSize / 512
	out.SetTimes(&n.modified, &n.modified, &n.modified)
}

func fillEntry(n *node, out *fuse.EntryOut) {
	n.lookups++
	out.NodeId, out.Generation = n.id, 1
	out.SetEntryTimeout(attributesValid)
	out.SetAttrTimeout(attributesValid)
	fillAttr(n, &out.Attr)
}

func (o *operations) Lookup(
	_ <-chan struct{}, header *fuse.InHeader, name string, out *fuse.EntryOut,
) fuse.Status {
	return o.inDir(header.NodeId, name, func(_ *tree, _, child *node) fuse.Status {
		if child == nil {
			return fuse.ENOENT
		}
		fillEntry(child, out)
		return fuse.OK
	})
}

func (o *operations) Forget(id, lookups uint64) {
	o.disk.mu.Lock()
	defer o.disk.mu.Unlock()
	if n := o.disk.tree.nodes[id]; n != nil {
		n.lookups -= min(n.lookups, lookups)
		o.disk.tree.drop(n)
	}
}

func (o *operations) GetAttr(
	_ <-chan struct{}, input *fuse.GetAttrIn, out *fuse.AttrOut,
) fuse.Status {
	return o.on(input.NodeId, func(_ *tree, n *node) fuse.Status {
		out.SetTimeout(attributesValid)
		fillAttr(n, &out.Attr)
		return fuse.OK
	})
}

func (o *operations) SetAttr(
	_ <-chan struct{}, input *fuse.SetAttrIn, out *fuse.AttrOut,
) fuse.Status {
	return o.on(input.NodeId, func(_ *tree, n *node) fuse.Status {
		if mode, ok := input.GetMode(); ok {
			n.mode = n.mode&syscall.S_IFMT | mode
		}
		if uid, ok := input.GetUID(); ok {
			n.uid = uid
		}
		if gid, ok := input.GetGID(); ok {
			n.gid = gid
		}
		if size, ok := input.GetSize(); ok {
			n.file.resize(int64(size))
			n.modified = time.Now()
		}
		if modified, ok := input.GetMTime(); ok {
			n.modified = modified
		}
		out.SetTimeout(attributesValid)
		fillAttr(n, &out.Attr)
		return fuse.OK
	})
}

// make adds a node under a new name.
func (o *operations) make(
	header *fuse.InHeader, name string, mode uint32, out *fuse.EntryOut, prepare func(*node),
) fuse.Status {
	return o.inDir(header.NodeId, name, func(t *tree, dir, child *node) fuse.Status {
		if child != nil {
			return fuse.Status(syscall.EEXIST)
		}
		n := t.add(mode, header.Uid, header.Gid)
		if prepare != nil {
			prepare(n)
		}
		t.apply(operation{{dir, name, n}})
		fillEntry(n, out)
		return fuse.OK
	})
}

func (o *operations) Mknod(
	_ <-chan struct{}, input *fuse.MknodIn, name string, out *fuse.EntryOut,
) fuse.Status {
	return o.make(&input.InHeader, name, input.Mode, out, nil)
}

func (o *operations) Mkdir(
	_ <-chan struct{}, input *fuse.MkdirIn, name string, out *fuse.EntryOut,
) fuse.Status {
	return o.make(&input.InHeader, name, syscall.S_IFDIR|input.Mode, out, nil)
}

func (o *operations) Symlink(
	_ <-chan struct{}, header *fuse.InHeader, target, name string, out *fuse.EntryOut,
) fuse.Status {
	return o.make(header, name, syscall.S_IFLNK|0o777, out, func(n *node) { n.target = target })
}

func (o *operations) Create(
	_ <-chan struct{}, input *fuse.CreateIn, name string, out *fuse.CreateOut,
) fuse.Status {
	return o.make(&input.InHeader, name, syscall.S_IFREG|input.Mode&0o7777, &out.EntryOut, nil)
}

func (o *operations) Link(
	_ <-chan struct{}, input *fuse.LinkIn, name string, out *fuse.EntryOut,
) fuse.Status {
	return o.inDir(input.NodeId, name, func(t *tree, dir, child *node) fuse.Status {
		n := t.nodes[input.Oldnodeid]
		switch {
		case child != nil:
			return fuse.Status(syscall.EEXIST)
		case n == nil:
			return fuse.Status(syscall.ESTALE)
		}
		t.apply(operation{{dir, name, n}})
		fillEntry(n, out)
		return fuse.OK
	})
}

func (o *operations) Unlink(_ <-chan struct{}, header *fuse.InHeader, name string) fuse.Status {
	return o.inDir(header.NodeId, name, func(t *tree, dir, child *node) fuse.Status {
		if child == nil {
			return fuse.ENOENT
		}
		t.apply(operation{{dir, name, nil}})
		return fuse.OK
	})
}

func (o *operations) Rmdir(_ <-chan struct{}, header *fuse.InHeader, name string) fuse.Status {
	return o.inDir(header.NodeId, name, func(t *tree, dir, child *node) fuse.Status {
		switch {
		case child == nil:
			return fuse.ENOENT
		case len(child.entries) > 0:
			return fuse.Status(syscall.ENOTEMPTY)
		}
		t.apply(operation{{dir, name, nil}})
		return fuse.OK
	})
}

func (o *operations) Rename(_ <-chan struct{}, input *fuse.RenameIn, from, to string) fuse.Status {
	return o.inDir(input.NodeId, from, func(t *tree, dir, child *node) fuse.Status {
		target := t.nodes[input.Newdir]
		switch {
		case child == nil:
			return fuse.ENOENT
		case target == nil:
			return fuse.Status(syscall.ESTALE)
		case input.Flags != 0: // RENAME_EXCHANGE and RENAME_NOREPLACE are not supported
			return fuse.EINVAL
		}
		if old := target.entries[to]; old == child {
			return fuse.OK
		} else if old != nil && len(old.entries) > 0 {
			return fuse.Status(syscall.ENOTEMPTY)
		}
		t.apply(operation{{dir, from, nil}, {target, to, child}})
		return fuse.OK
	})
}

func (o *operations) Readlink(
	_ <-chan struct{}, header *fuse.InHeader,
) (target []byte, status fuse.Status) {
	status = o.on(header.NodeId, func(_ *tree, n *node) fuse.Status {
		target = []byte(n.target)
		return fuse.OK
	})
	return target, status
}

func (o *operations) Access(<-chan struct{}, *fuse.AccessIn) fuse.Status { return fuse.OK }

func (o *operations) Open(_ <-chan struct{}, input *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	return o.on(input.NodeId, func(_ *tree, n *node) fuse.Status {
		if input.Flags&syscall.O_TRUNC != 0 {
			n.file.resize(0)
		}
		out.OpenFlags = fuse.FOPEN_KEEP_CACHE
		return fuse.OK
	})
}

func (o *operations) Read(
	_ <-chan struct{}, input *fuse.ReadIn, dest []byte,
) (result fuse.ReadResult, status fuse.Status) {
	status = o.on(input.NodeId, func(_ *tree, n *node) fuse.Status {
		result = fuse.ReadResultData(dest[:n.file.readAt(dest, int64(input.Offset))])
		return fuse.OK
	})
	return result, status
}

func (o *operations) Write(
	_ <-chan struct{}, input *fuse.WriteIn, data []byte,
) (written uint32, status fuse.Status) {
	status = o.on(input.NodeId, func(t *tree, n *node) fuse.Status {
		n.file.writeAt(data, int64(input.Offset))
		n.modified = time.Now()
		if input.Flags&(syscall.O_SYNC|syscall.O_DSYNC) != 0 {
			t.syncFile(n)
		}
		return fuse.OK
	})
	return uint32(len(data)), status
}

// Fallocate reserves space. In memory it only sets the size.
func (o *operations) Fallocate(_ <-chan struct{}, input *fuse.FallocateIn) fuse.Status {
	return o.on(input.NodeId, func(_ *tree, n *node) fuse.Status {
		if input.Mode != 0 { // for example punching holes
			return fuse.Status(syscall.EOPNOTSUPP)
		}
		if end := int64(input.Offset + input.Length); end > n.file.now.size {
			n.file.resize(end)
		}
		return fuse.OK
	})
}

func (o *operations) Fsync(_ <-chan struct{}, input *fuse.FsyncIn) fuse.Status {
	return o.on(input.NodeId, func(t *tree, n *node) fuse.Status {
		t.syncFile(n)
		return fuse.OK
	})
}

func (o *operations) FsyncDir(_ <-chan struct{}, input *fuse.FsyncIn) fuse.Status {
	return o.on(input.NodeId, func(t *tree, n *node) fuse.Status {
		t.syncDir(n)
		return fuse.OK
	})
}

func (o *operations) Flush(<-chan struct{}, *fuse.FlushIn) fuse.Status { return fuse.OK }

func (o *operations) OpenDir(_ <-chan struct{}, input *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	return o.on(input.NodeId, func(_ *tree, n *node) fuse.Status {
		var names []listed
		for name, child := range n.entries {
			names = append(names, listed{name, child})
		}
		slices.SortFunc(names, func(a, b listed) int { return cmp.Compare(a.name, b.name) })
		d := o.disk
		d.handle++
		d.listings[d.handle] = append([]listed{{".", n}, {"..", n}}, names...)
		out.Fh = d.handle
		return fuse.OK
	})
}

func (o *operations) ReadDir(
	_ <-chan struct{}, input *fuse.ReadIn, out *fuse.DirEntryList,
) fuse.Status {
	return o.on(input.NodeId, func(*tree, *node) fuse.Status {
		names := o.disk.listings[input.Fh]
		for _, entry := range names[min(uint64(len(names)), input.Offset):] {
			if !out.AddDirEntry(
				fuse.DirEntry{Mode: entry.node.mode, Name: entry.name, Ino: entry.node.id},
			) {
				break
			}
		}
		return fuse.OK
	})
}

func (o *operations) ReleaseDir(input *fuse.ReleaseIn) {
	o.disk.mu.Lock()
	defer o.disk.mu.Unlock()
	delete(o.disk.listings, input.Fh)
}

// StatFs reports a disk with much free space.
func (o *operations) StatFs(_ <-chan struct{}, _ *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	const blocks = 64 << 30 / pageSize
	out.Blocks, out.Bfree, out.Bavail = blocks, blocks, blocks
	out.Files, out.Ffree, out.Bsize, out.Frsize, out.NameLen = 1<<20, 1<<20, pageSize, pageSize, 255
	return fuse.OK
}
