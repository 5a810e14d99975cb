package faults

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"hubcloud/test/harness"
)

// networkVariable is set in a process that ownNetwork has started.
const networkVariable = "HUBCLOUD_TEST_NETWORK"

// ownNetwork makes this process begin again in a network namespace of its own, if it may. Bridges
// in the namespace of the machine would fail requests of every browser on it, of test/browser for
// one, with net::ERR_NETWORK_CHANGED.
func ownNetwork() {
	if _, err := exec.LookPath("ip"); err != nil || os.Getenv(networkVariable) != "" {
		return
	}
	if os.Getenv("HUBCLOUD_TEST_BINARY") == "" { // modules cannot be downloaded later
		_ = exec.Command("go", "list", "-deps", "hubcloud/cmd/hubcloud").Run() // the build reports it
	}
	runtime.LockOSThread() // its namespace is the one that exec keeps
	if err := syscall.Unshare(syscall.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return
	}
	self, err := os.Executable()
	if err == nil {
		err = ip("link", "set", "lo", "up")
	}
	if err == nil {
		err = syscall.Exec(self, os.Args, append(os.Environ(), networkVariable+"=own"))
	}
	panic(fmt.Sprintf("begin again in a network namespace: %v", err))
}

// network is a bridge with a network namespace, a place, for each process. The test is on the
// bridge and always reaches all places. Cutting two places from each other silently drops the
// packets between them.
type network struct {
	t      *testing.T
	bridge string
	prefix string
	places []*namespace
}

// namespace is a place on a network.
type namespace struct {
	harness.Place
	name string
}

// nowhere is an unused Ethernet address.
const nowhere = "02:00:00:00:00:01"

// newNetwork creates a network. It returns nil and logs the reason where that is not possible.
func newNetwork(t *testing.T) *network {
	t.Helper()
	if os.Getenv(networkVariable) == "" {
		t.Log("NO SEPARATE NETWORK: only root can create network namespaces, with the program ip")
		return nil
	}
	n := &network{t: t}
	if err := n.make(); err != nil {
		t.Logf("NO SEPARATE NETWORK: %v", err)
		return nil
	}
	return n
}

// make creates the bridge, on addresses of the benchmarking range (198.18.0.0/15) that no other
// test uses.
func (n *network) make() error {
	dir := filepath.Join(os.TempDir(), "hubcloud-test-networks")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for i := range 250 {
		lock, err := os.OpenFile(filepath.Join(dir, fmt.Sprint(i)), os.O_CREATE|os.O_RDWR, 0o666)
		if err != nil {
			return err
		}
		if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
			lock.Close()
			continue
		}
		n.t.Cleanup(func() { lock.Close() })
		n.bridge, n.prefix = fmt.Sprintf("hctest%d", i), fmt.Sprintf("198.18.%d", i)
		n.remove() // leftovers of a killed test
		n.t.Cleanup(n.remove)
		return errors.Join(
			ip("link", "add", n.bridge, "type", "bridge"),
			ip("addr", "add", n.prefix+".1/24", "dev", n.bridge), ip("link", "set", n.bridge, "up"),
		)
	}
	return errors.New("every range of addresses is in use")
}

// place adds a place. what names its process in failures.
func (n *network) place(what string) *namespace {
	n.t.Helper()
	number := len(n.places) + 10
	p := &namespace{name: fmt.Sprintf("%s-%d", n.bridge, number)}
	p.Address, p.Under = fmt.Sprintf("%s.%d", n.prefix, number), []string{
		"ip",
		"netns",
		"exec",
		p.name,
	}
	outside := fmt.Sprintf("%sp%d", n.bridge, number)
	err := errors.Join(
		ip("netns", "add", p.name),
		ip("link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", p.name),
		ip("link", "set", outside, "master", n.bridge, "up"),
		ip("-n", p.name, "addr", "add", p.Address+"/24", "dev", "eth0"),
		ip("-n", p.name, "link", "set", "eth0", "up"), ip("-n", p.name, "link", "set", "lo", "up"),
	)
	if err != nil {
		n.t.Fatalf("add place for %s: %v", what, err)
	}
	n.places = append(n.places, p)
	return p
}

// reached reports whether packets pass between the test and a place. The machine's firewall may
// block bridges.
func (n *network) reached(p *namespace) bool {
	listener := exec.Command(p.Under[0], append(p.Under[1:], "sleep", "60")...)
	if listener.Start() != nil {
		return false
	}
	defer func() {
		_ = listener.Process.Kill() // a sleeping process
		_ = listener.Wait()         // Wait reports the kill
	}()
	// Nothing listens there: the refusal shows that the packet arrived.
	_, err := net.DialTimeout("tcp", net.JoinHostPort(p.Address, "9"), 2*time.Second)
	return errors.Is(err, syscall.ECONNREFUSED)
}

// cut drops all packets between two places.
func (n *network) cut(a, b *namespace) {
	n.t.Helper()
	err := errors.Join(
		ip(
			"-n", a.name, "neigh", "replace", b.Address, "lladdr", nowhere, "dev", "eth0", "nud",
			"permanent",
		),
		ip(
			"-n", b.name, "neigh", "replace", a.Address, "lladdr", nowhere, "dev", "eth0", "nud",
			"permanent",
		),
	)
	if err != nil {
		n.t.Errorf("cut %s from %s: %v", a.name, b.name, err)
	}
}

// mend ends a cut.
func (n *network) mend(a, b *namespace) {
	n.t.Helper()
	err := errors.Join(
		ip("-n", a.name, "neigh", "del", b.Address, "dev", "eth0"),
		ip("-n", b.name, "neigh", "del", a.Address, "dev", "eth0"),
	)
	if err != nil {
		n.t.Errorf("mend %s and %s: %v", a.name, b.name, err)
	}
}

// remove deletes the network. Processes in it keep their namespace until they exit.
func (n *network) remove() {
	for number := 10; number < 40; number++ {
		_ = ip("netns", "del", fmt.Sprintf("%s-%d", n.bridge, number)) // most do not exist
	}
	_ = ip("link", "del", n.bridge) // may not exist
}

// ip runs the program ip.
func ip(arguments ...string) error {
	if out, err := exec.Command("ip", arguments...).CombinedOutput(); err != nil {
		return fmt.Errorf(
			"ip %s: %w: %s", strings.Join(arguments, " "), err, strings.TrimSpace(string(out)),
		)
	}
	return nil
}
