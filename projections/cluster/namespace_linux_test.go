package cluster

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"hubcloud/streams/streamstest"
)

// contain makes the process the first one of a container: it sees only the processes of its
// namespace, and runs as the user uid:gid, as its server does.
func contain(user string) error {
	var uid, gid int
	if _, err := fmt.Sscanf(user, "%d:%d", &uid, &gid); err != nil {
		return err
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return err
	}
	return errors.Join(syscall.Setgroups(nil), syscall.Setgid(gid), syscall.Setuid(uid))
}

// The lock file of a killed server's socket was left. In a container, where process ids start from
// 1 each time, its process id was mostly that of another server process or of a thread of this
// process, and PostgreSQL did not start: 14 of 24 starts failed.
func TestStartsAfterEverythingInItsContainerWasKilled(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("NOT TRIED: making a process-id namespace takes root")
	}
	dir, err := os.MkdirTemp("", "hubcloud-container-")
	streamstest.Must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	owner, err := chooseIdentity(dir + "/missing")
	streamstest.Must(t, err)
	streamstest.Must(t, os.Chown(dir, int(owner.uid), int(owner.gid)))
	for round := range 10 {
		command := exec.Command(os.Args[0])
		command.Env = append(
			os.Environ(), fmt.Sprintf("%s=%d:%d", containEnv, owner.uid, owner.gid),
			holdEnv+"="+dir+"/postgres",
		)
		command.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL,
		}
		command.Stderr = os.Stderr
		output, err := command.StdoutPipe()
		streamstest.Must(t, err)
		if err := command.Start(); errors.Is(err, syscall.EPERM) {
			t.Skip("NOT TRIED: process-id namespaces are not allowed here:", err)
		} else if err != nil {
			t.Fatal(err)
		}
		hung := time.AfterFunc(time.Minute, func() { _ = command.Process.Kill() })
		lines := bufio.NewScanner(output)
		answered := lines.Scan()
		hung.Stop()
		// the first process of its namespace: the others are killed with it
		_ = command.Process.Kill()
		_ = command.Wait()
		if text := lines.Text(); !answered || !strings.HasPrefix(text, "postgres://") {
			if strings.HasPrefix(text, notContained) {
				t.Skip("NOT TRIED:", text)
			}
			t.Fatalf("start %d prints %q, want the server's URL", round+1, text)
		}
	}
}
