//go:build unix && !linux

package cluster

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// attributes returns the attributes of the server's and initdb's processes: their user, and a
// process group of their own, so that a Ctrl-C at the terminal does not reach them. The kernel
// cannot tell them when this process dies; the next Start takes over.
func (id identity) attributes(syscall.Signal) *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Setpgid: true}
	if id.assumed {
		attributes.Credential = &syscall.Credential{Uid: id.uid, Gid: id.gid}
	}
	return attributes
}

// canGrantCrossing returns false: there are no capabilities on this system.
func canGrantCrossing() bool { return false }

// servers returns the ids of the living servers that were started on dir. Without /proc it looks
// for the directory in the command lines.
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
