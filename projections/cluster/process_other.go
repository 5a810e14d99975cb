//go:build unix && !linux

package cluster

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// attributes is how the server and initdb are started: as their user, and in a process group of
// their own so that a Ctrl-C at the terminal is for us alone. Here the kernel does not tell them
// when we die; the next Start takes over.
func (id identity) attributes(syscall.Signal) *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Setpgid: true}
	if id.assumed {
		attributes.Credential = &syscall.Credential{Uid: id.uid, Gid: id.gid}
	}
	return attributes
}

// canGrantCrossing says that there are no capabilities here to hand down.
func canGrantCrossing() bool { return false }

// servers gives the ids of the living servers that were started on dir. Without /proc it is the
// command line that tells: a server of ours has the directory in it.
func servers(dir string) ([]int, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	output, err := exec.Command("ps", "-A", "-o", "pid=,stat=,command=").Output()
	if err != nil {
		return nil, err
	}
	var pids []int
	for line := range strings.Lines(string(output)) {
		fields := strings.Fields(line)
		if len(fields) < 3 || strings.HasPrefix(fields[1], "Z") ||
			filepath.Base(fields[2]) != "postgres" {
			continue
		}
		if !strings.Contains(line, " -D "+dir+" ") && !strings.Contains(line, " -D "+real+" ") {
			continue
		}
		if pid, err := strconv.Atoi(fields[0]); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}
