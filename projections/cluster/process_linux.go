package cluster

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// The capabilities to pass through any directory (capabilities(7)). The first allows only reading;
// containers usually have the second.
const (
	capDACReadSearch = 2
	capDACOverride   = 1
)

// attributes returns the attributes of the server's and initdb's processes: their user, a process
// group of their own, so that a Ctrl-C at the terminal does not reach them, and the signal that
// they get when this process dies. The kernel sends the signal when the thread that started them
// ends, so that thread must last as long as they do.
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

// canGrantCrossing reports whether this process can give the server a capability to pass through
// closed directories.
func canGrantCrossing() bool { return crossing() != 0 }

// crossing returns the weakest such capability that this process has; 0 for none.
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

// servers returns the ids of the living PostgreSQL processes, postmaster and children, whose
// working directory is dir: a server's is its data directory, whatever postmaster.pid says.
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
			continue // ended meanwhile, or another program
		}
		process := filepath.Dir(name)
		// A zombie has no working directory, and another user's process does not show its own.
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
