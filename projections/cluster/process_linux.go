package cluster

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// The capabilities that let a process pass through any directory (capabilities(7)). The first
// allows reading only, the second is what containers usually have.
const (
	capDACReadSearch = 2
	capDACOverride   = 1
)

// attributes is how the server and initdb are started: as their user, in a process group of their
// own so that a Ctrl-C at the terminal is for us alone, and told with death when we die. The kernel
// sends it when the thread that started them ends, so that must be one that lasts as long as they
// do.
func (id identity) attributes(death syscall.Signal) *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: death}
	if id.assumed {
		attributes.Credential = &syscall.Credential{Uid: id.uid, Gid: id.gid}
	}
	if id.mayCross {
		attributes.AmbientCaps = []uintptr{crossing()}
	}
	return attributes
}

// canGrantCrossing says whether we have a capability to hand down that lets the server pass through
// closed directories.
func canGrantCrossing() bool { return crossing() != 0 }

// crossing gives the weakest such capability that we have, 0 for none.
func crossing() uintptr {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		digits, ok := strings.CutPrefix(line, "CapPrm:")
		if !ok {
			continue
		}
		permitted, err := strconv.ParseUint(strings.TrimSpace(digits), 16, 64)
		if err != nil {
			return 0
		}
		for _, capability := range []uintptr{capDACReadSearch, capDACOverride} {
			if permitted&(1<<capability) != 0 {
				return capability
			}
		}
	}
	return 0
}

// servers gives the ids of the living PostgreSQL processes that work in dir, postmaster and
// children alike. It asks the kernel: a server's working directory is its data directory, whatever
// postmaster.pid says.
func servers(dir string) ([]int, error) {
	here, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	names, err := filepath.Glob("/proc/[1-9]*/comm")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, name := range names {
		comm, err := os.ReadFile(name)
		if err != nil || string(comm) != "postgres\n" {
			continue // gone meanwhile, or something else
		}
		process := filepath.Dir(name)
		// A dead process that nobody has waited for has no working directory any more; nor may we
		// see that of another user's.
		there, err := os.Stat(process + "/cwd")
		if err != nil || !os.SameFile(here, there) || isZombie(process) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(process))
		if err != nil {
			continue
		}
		pids = append(pids, pid)
	}
	return pids, nil
}

func isZombie(process string) bool {
	stat, err := os.ReadFile(process + "/stat")
	if err != nil {
		return true
	}
	_, state, ok := bytes.Cut(stat, []byte(") "))
	return !ok || len(state) == 0 || state[0] == 'Z' || state[0] == 'X'
}
