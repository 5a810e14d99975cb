//go:build linux

package lossyfs

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// Loss selects what a power cut loses.
type Loss int

const (
	// Everything loses all unsynced changes.
	Everything Loss = iota
	// Some loses a random part of the unsynced changes, like a disk that has written part of its
	// cache: any of the changed pages, and all name changes after a random one.
	Some
)

// busyTimeout and busyPause bound the attempts to unmount a file system that is in use.
const (
	busyTimeout = 10 * time.Second
	busyPause   = 20 * time.Millisecond
)

// Disk is a mounted file system that loses unsynced changes when the power is cut.
type Disk struct {
	// Dir is the mount point.
	Dir string

	t      testing.TB
	server *fuse.Server

	mu   sync.Mutex
	tree *tree
	// listings has the content of each open folder at the time of opening, by handle.
	listings map[uint64][]listed
	handle   uint64
	// off is not nil while the power is off. It is closed when pending calls may fail.
	off chan struct{}
}

// Mount mounts an empty file system at dir until the test ends. It skips the test where FUSE is not
// available.
func Mount(t testing.TB, dir string) *Disk {
	t.Helper()
	if f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0); err != nil {
		t.Skipf("NOT TRIED: power cuts need /dev/fuse: %v", err)
	} else if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	d := &Disk{Dir: dir, t: t, tree: newTree()}
	if err := d.mount(); errors.Is(err, syscall.EPERM) {
		t.Skipf("NOT TRIED: power cuts need the right to mount: %v", err)
	} else if err != nil {
		t.Fatalf("mount %s: %v", dir, err)
	}
	t.Cleanup(d.unmount)
	return d
}

func (d *Disk) mount() error {
	d.listings = map[uint64][]listed{}
	server, err := fuse.NewServer(
		&operations{RawFileSystem: fuse.NewDefaultRawFileSystem(), disk: d},
		d.Dir,
		&fuse.MountOptions{
			FsName: "lossyfs", Name: "lossyfs", AllowOther: true, DirectMountStrict: true,
			DisableXAttrs: true, DisableReadDirPlus: true, MaxWrite: 1 << 20,
		},
	)
	if err != nil {
		return err
	}
	d.server = server
	go server.Serve() // ends with unmount, which waits for it
	return server.WaitMount()
}

// unmount unmounts the file system. A process that another test has just forked may use it until it
// calls exec, so unmount tries for busyTimeout.
func (d *Disk) unmount() {
	err := d.server.Unmount()
	for began := time.Now(); err != nil && time.Since(began) < busyTimeout; {
		<-time.After(busyPause)
		err = d.server.Unmount()
	}
	if err != nil {
		d.t.Errorf("unmount %s: %v", d.Dir, err)
		_ = syscall.Unmount(d.Dir, syscall.MNT_DETACH) // so that the folder can be removed
		return
	}
	d.server.Wait()
}

// CutPower blocks all calls on the file system, calls kill, lets the blocked calls fail, and calls
// wait. kill must send SIGKILL to every process that uses the file system; wait must return once
// they have exited. Then CutPower drops unsynced changes and mounts what is left at the same place.
// The seed decides what Some loses.
func (d *Disk) CutPower(loss Loss, seed uint64, kill, wait func()) {
	d.t.Helper()
	off := make(chan struct{})
	d.mu.Lock()
	d.off = off
	d.mu.Unlock()
	kill()
	close(off)
	wait()
	d.unmount()
	var random *rand.Rand
	if loss == Some {
		random = rand.New(rand.NewPCG(seed, seed))
	}
	for _, name := range d.tree.unsyncedNames() {
		d.t.Logf("power cut: name not synced: %s", name)
	}
	d.tree.cut(random)
	d.off = nil
	if err := d.mount(); err != nil {
		d.t.Fatalf("mount %s again: %v", d.Dir, err)
	}
}

// enter begins a call on the file system, which ends with d.mu.Unlock. While the power is off,
// enter blocks and then fails.
func (d *Disk) enter() error {
	d.mu.Lock()
	off := d.off
	if off == nil {
		return nil
	}
	d.mu.Unlock()
	<-off
	return errPowerOff
}

var errPowerOff = fmt.Errorf("the power is off: %w", syscall.EIO)
