package faults

import (
	"net/http"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// TestBridgeAlone runs a replica without the API role. Regression: its admin port did not report
// readiness.
func TestBridgeAlone(t *testing.T) {
	t.Parallel()
	first := harness.Start(t)
	admin := streamstest.FreeAddress(t)
	process := exec.Command(
		harness.Binary(t),
		"serve",
		"--data-dir",
		t.TempDir(),
		"--roles",
		"bridge",
		"--admin",
		admin,
		"--environment",
		"dev",
		"--nats-url",
		"nats://"+first.NATS,
		"--nats-credentials",
		filepath.Join(first.Dir, "nats-credentials.json"),
		"--postgres-url",
		"postgres:///postgres?user=hubcloud&sslmode=disable&host="+filepath.Join(
			first.Dir, "postgres", "socket",
		),
	)
	process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	streamstest.Eventually(t, "the replica is ready", func() bool {
		answer, err := http.Get("http://" + admin + "/readyz")
		if err != nil {
			return false
		}
		answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
	if err := process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := process.Wait(); err != nil {
		t.Errorf("exit: got %v, want nil", err)
	}
}

// TestKillWhileStarting kills the service during its first starts, for example while it creates the
// database. The next start must succeed.
func TestKillWhileStarting(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for range *kills {
		process := exec.Command(
			harness.Binary(t), "serve", "--data-dir", dir, "--environment", "dev",
			"--http", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--mqtt", "127.0.0.1:0",
			"--nats", "127.0.0.1:0",
		)
		process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := process.Start(); err != nil {
			t.Fatal(err)
		}
		harness.AnyMoment(0, time.Second)
		if err := process.Process.Kill(); err != nil {
			t.Errorf("kill: %v; want a running process", err)
		}
		_ = process.Wait() // Wait reports the kill
	}
	s := harness.StartIn(t, dir)
	tenant := harness.NewTenant(t, s, "Killed")
	hub := adopted(t, s, tenant)
	hub.EventsFrom("log-1", 1, 3)
	hub.WaitAck("log-1", 3)
	expect(t, tenant.AllEvents(hub.ID, ""), "1", "2", "3")
}
