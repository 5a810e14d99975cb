package harness

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"hubcloud/streams/streamstest"
)

// KillIn sends SIGKILL to a process and to every process whose working directory is dir or below.
func KillIn(pid int, dir string) {
	_ = syscall.Kill(pid, syscall.SIGKILL) // fails only when the process has exited
	for _, pid := range workingIn(dir) {
		_ = syscall.Kill(pid, syscall.SIGKILL) // fails only when the process has exited
	}
}

// WaitGoneFrom kills the processes whose working directory is dir or below until there are none.
func WaitGoneFrom(t testing.TB, dir string) {
	t.Helper()
	streamstest.Eventually(t, "no process works in "+dir, func() bool {
		pids := workingIn(dir)
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL) // fails only when it has ended
		}
		return len(pids) == 0
	})
}

// KillAll sends SIGKILL to the service and to every process that works in its data directory, such
// as its private database.
func (s *Service) KillAll() { KillIn(s.PID(), s.Dir) }

// PIDs returns the service's process, and those that work in its data directory.
func (s *Service) PIDs() []int { return append(workingIn(s.Dir), s.PID()) }

// WaitGone waits until the processes that KillAll killed have exited.
func (s *Service) WaitGone() {
	s.t.Helper()
	<-s.ended
	WaitGoneFrom(s.t, s.Dir)
}

// workingIn returns the processes whose working directory is dir or below. Zombies have none.
func workingIn(dir string) (pids []int) {
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		return nil
	}
	for _, link := range links {
		cwd, err := os.Readlink(link)
		if err != nil || cwd != dir && !strings.HasPrefix(cwd, dir+"/") {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}
