package lossyfs

import (
	"math/rand/v2"
	"slices"
	"syscall"
	"time"
)

// node is a file, a folder, a symbolic link or a socket.
type node struct {
	id       uint64
	mode     uint32 // with the type, as in stat
	uid, gid uint32
	modified time.Time
	// names counts the names that programs see. lookups counts the kernel's references.
	names   int
	lookups uint64

	file   file
	target string
	// nameKept is set once the file was synced, which also keeps the name under which it was
	// created.
	nameKept bool
	// entries has the names in a folder as programs see them. kept has those that a power cut
	// leaves.
	entries, kept map[string]*node
}

func (n *node) isDir() bool { return n.mode&syscall.S_IFMT == syscall.S_IFDIR }

// change creates one name in a folder, or removes it when node is nil.
type change struct {
	dir  *node
	name string
	node *node
}

// operation has the name changes of one call. A rename changes two names, which are kept together.
type operation []change

func (o operation) touches(dirs map[*node]bool) bool {
	return slices.ContainsFunc(o, func(c change) bool { return dirs[c.dir] })
}

func (o operation) keep() {
	for _, c := range o {
		if c.node == nil {
			delete(c.dir.kept, c.name)
		} else {
			c.dir.kept[c.name] = c.node
		}
	}
}

// tree is the file system in its two versions. Callers hold the disk's mutex.
type tree struct {
	root   *node
	nodes  map[uint64]*node
	lastID uint64
	// pending has the operations that a power cut would undo, oldest first.
	pending []operation
	// synced counts the syncs of files and folders, for tests.
	synced int
}

func newTree() *tree {
	t := &tree{nodes: map[uint64]*node{}}
	t.root = t.add(syscall.S_IFDIR|0o755, 0, 0)
	t.root.names = 1
	return t
}

func (t *tree) add(mode, uid, gid uint32) *node {
	t.lastID++ // the root gets 1, as FUSE requires
	n := &node{id: t.lastID, mode: mode, uid: uid, gid: gid, modified: time.Now()}
	if n.isDir() {
		n.entries, n.kept = map[string]*node{}, map[string]*node{}
	}
	t.nodes[n.id] = n
	return n
}

// apply makes name changes visible. They are not kept yet.
func (t *tree) apply(o operation) {
	for _, c := range o {
		if old := c.dir.entries[c.name]; old != nil {
			old.names--
			t.drop(old)
		}
		if c.node == nil {
			delete(c.dir.entries, c.name)
		} else {
			c.dir.entries[c.name] = c.node
			c.node.names++
		}
		c.dir.modified = time.Now()
	}
	t.pending = append(t.pending, o)
}

// drop deletes a node without names that the kernel does not refer to.
func (t *tree) drop(n *node) {
	if n.names == 0 && n.lookups == 0 {
		delete(t.nodes, n.id)
	}
}

// syncFile keeps a file's content. The first sync also keeps the name under which the file was
// created.
func (t *tree) syncFile(n *node) {
	t.synced++
	n.file.sync()
	if n.nameKept {
		return
	}
	n.nameKept = true
	made := slices.IndexFunc(
		t.pending, func(o operation) bool { return len(o) == 1 && o[0].node == n },
	)
	if made < 0 {
		return
	}
	dir, name := t.pending[made][0].dir, t.pending[made][0].name
	for i := 0; i <= made; i++ {
		if o := t.pending[i]; len(o) == 1 && o[0].dir == dir && o[0].name == name {
			o.keep()
			t.pending = slices.Delete(t.pending, i, i+1)
			i, made = i-1, made-1
		}
	}
}

// syncDir keeps the names of a folder and earlier changes that they depend on: if an operation
// changed two folders, earlier changes of the other folder are kept too.
func (t *tree) syncDir(dir *node) {
	t.synced++
	dirs := map[*node]bool{dir: true}
	for _, o := range slices.Backward(t.pending) {
		if o.touches(dirs) {
			for _, c := range o {
				dirs[c.dir] = true
			}
		}
	}
	t.pending = slices.DeleteFunc(t.pending, func(o operation) bool {
		if !o.touches(dirs) {
			return false
		}
		o.keep()
		return true
	})
}

// unsyncedNames returns the paths of synced files and of folders whose names a power cut may lose.
func (t *tree) unsyncedNames() (paths []string) {
	var walk func(dir *node, path string)
	walk = func(dir *node, path string) {
		for name, n := range dir.entries {
			full := path + "/" + name
			if dir.kept[name] != n && (n.isDir() || n.file.kept.size > 0) {
				paths = append(paths, full)
			} else if n.isDir() {
				walk(n, full)
			}
		}
	}
	walk(t.root, "")
	slices.Sort(paths)
	return paths
}

// cut replaces what programs see by what a power cut leaves. With a random source, it also keeps
// pending operations up to a random one, and random written pages.
func (t *tree) cut(random *rand.Rand) {
	if random != nil {
		for _, o := range t.pending[:random.IntN(len(t.pending)+1)] {
			o.keep()
		}
	}
	t.pending = nil
	t.nodes = map[uint64]*node{}
	t.restore(t.root, random)
}

// restore rebuilds the visible nodes below n from what is kept.
func (t *tree) restore(n *node, random *rand.Rand) {
	if _, again := t.nodes[n.id]; again {
		n.names++
		return
	}
	t.nodes[n.id] = n
	n.names, n.lookups = 1, 0
	if !n.isDir() {
		n.file.cut(random)
		return
	}
	n.entries = make(map[string]*node, len(n.kept))
	for name, child := range n.kept {
		n.entries[name] = child
		t.restore(child, random)
	}
}
