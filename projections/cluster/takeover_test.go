package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"hubcloud/streams/streamstest"
)

// orphanWithTable returns a cluster with the table kept, which has one row, its directory, and a
// server on it whose parent has ended.
func orphanWithTable(t *testing.T) (c *Cluster, dir string, command *exec.Cmd) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "postgres")
	c = start(t, dir)
	run(t, c.URL(), "CREATE TABLE kept AS SELECT 1 AS n")
	streamstest.Must(t, c.Stop(t.Context()))
	return c, dir, orphan(t, c)
}

func TestTakesOverFromAServerThatOutlivedItsParent(t *testing.T) {
	t.Parallel()
	c, dir, command := orphanWithTable(t)
	// A session is in the middle of a transaction.
	run(t, c.URL(), "BEGIN; INSERT INTO kept VALUES (2)")
	begun := time.Now()
	again := start(t, dir)
	t.Logf("take-over: %s", time.Since(begun))
	if pid := readPIDFile(again.data).pid; pid == command.Process.Pid {
		t.Error("the old server still has the directory")
	}
	if n := count(t, again.URL()); n != 1 {
		t.Errorf("got %d rows, want 1", n)
	}
}

func TestTakesOverTheChildrenOfAKilledServer(t *testing.T) {
	t.Parallel()
	c, dir, command := orphanWithTable(t)
	// A stopped child does not notice that its parent has ended, and holds the shared memory.
	conn := connect(t, c.URL())
	streamstest.Must(t, syscall.Kill(int(conn.PgConn().PID()), syscall.SIGSTOP))
	streamstest.Must(t, command.Process.Kill())
	_ = command.Wait()
	if n := count(t, start(t, dir).URL()); n != 1 {
		t.Errorf("got %d rows, want 1", n)
	}
}

// A server that was killed leaves a lock file in its data directory and one beside its socket.
func TestStaleLockFiles(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "postgres")
	c := start(t, dir)
	streamstest.Must(t, c.Stop(t.Context()))
	// A process of the server's own user, so that PostgreSQL would take it for a server.
	other := exec.Command("sleep", "60")
	other.SysProcAttr = c.owner.attributes(syscall.SIGKILL)
	streamstest.Must(t, other.Start())
	t.Cleanup(func() { _ = other.Process.Kill(); _ = other.Wait() })
	for name, first := range map[string]string{
		"of no process": "4194303", "of another process": strconv.Itoa(other.Process.Pid),
		"of ours":      strconv.Itoa(os.Getpid()),
		"of no number": "soon", "empty": "",
	} {
		content := first + "\n" + c.data + "\n1700000000\n5432\n" + c.socket.path + "\n\n  1 2\nready\n"
		if first == "" {
			content = ""
		}
		for _, path := range []string{
			filepath.Join(c.data, pidFile), socketFile(c.socket.path) + ".lock",
		} {
			streamstest.Must(t, os.WriteFile(path, []byte(content), 0o600))
			again := start(t, dir)
			run(t, again.URL(), "SELECT 1")
			if err := again.Stop(t.Context()); err != nil {
				t.Errorf("%s: %s: %v", path, name, err)
			}
		}
	}
	if err := other.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the other process: got %v, want it to run", err)
	}
}

// A server must not keep running if its process is never started again.
func TestTheServerEndsWhenItsProcessIsKilled(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux signals a child when its parent dies")
	}
	dir := filepath.Join(t.TempDir(), "postgres")
	command, url := holder(t, dir)
	run(t, url, "SELECT 1")
	majors, err := existing(dir)
	if err != nil || len(majors) != 1 {
		t.Fatal(majors, err)
	}
	data := filepath.Join(dir, strconv.Itoa(majors[0]))
	if pids, err := servers(data); err != nil || len(pids) == 0 {
		t.Fatalf("processes of the server: got %v, %v, want some", pids, err)
	}
	streamstest.Must(t, command.Process.Kill())
	_ = command.Wait()
	streamstest.Eventually(t, "the server has ended", func() bool {
		pids, err := servers(data)
		return err == nil && len(pids) == 0
	})
}

// A killed server leaves its process id in postmaster.pid. A Stop whose context ended killed the
// process that had this id by then.
func TestAbortEndsNoOtherProcess(t *testing.T) {
	t.Parallel()
	other := exec.Command("sleep", "60")
	streamstest.Must(t, other.Start())
	c := &Cluster{data: t.TempDir()}
	pid := fmt.Appendf(nil, "%d\n", other.Process.Pid)
	streamstest.Must(t, os.WriteFile(filepath.Join(c.data, pidFile), pid, 0o600))
	c.abort()
	streamstest.Must(t, other.Process.Kill())
	if err := other.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf(
			"a process that is no server ended with %v instead of being killed by this test", err,
		)
	}
}
