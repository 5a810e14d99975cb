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

	"github.com/hanwen/go-fuse/v2/fuse"
)

// Loss is what a power cut takes.
type Loss int

const (
	// Everything drops all that was not synced.
	Everything Loss = iota
	// Some drops a random part of what was not synced, as a disk that had written some of its
	// cache: of changed pages any, of changed names all after one of them.
	Some
)

// Disk is a mounted file system that forgets what was not synced.
type Disk struct {
	// Dir is where it is mounted.
	Dir string

	t      testing.TB
	server *fuse.Server

	mu   sync.Mutex
	tree *tree
	// open folders by handle, as they were listed when opened.
	listings map[uint64][]listed
	handle   uint64
	// off is not nil while the power is off: closed when calls may fail at last.
	off chan struct{}
}

// Mount mounts an empty file system at dir until the test ends. It skips the test, saying so, where
// FUSE cannot be used.
func Mount(t testing.TB, dir string) *Disk {
	t.Helper()
	if f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0); err != nil {
		t.Skipf("POWER CUTS ARE NOT TRIED: /dev/fuse: %v", err)
	} else if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	d := &Disk{Dir: dir, t: t, tree: newTree()}
	if err := d.mount(); errors.Is(err, syscall.EPERM) {
		t.Skipf("POWER CUTS ARE NOT TRIED: mount: %v", err)
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
	go server.Serve() // until unmount, which waits for it
	return server.WaitMount()
}

func (d *Disk) unmount() {
	if err := d.server.Unmount(); err != nil {
		d.t.Errorf("unmount %s: %v", d.Dir, err)
		_ = syscall.Unmount(d.Dir, syscall.MNT_DETACH) // the best that is left
		return
	}
	d.server.Wait()
}

// CutPower stops the file system between two calls, and has kill end every process that uses it:
// their calls wait until kill has returned from sending the signals, and then wait returns once the
// processes are gone. What was not synced is lost as said, and the rest is mounted again. The seed
// decides what Some loses.
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

// enter begins a call on the file system, which ends with d.mu.Unlock. While the power is off it
// waits and then fails.
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
