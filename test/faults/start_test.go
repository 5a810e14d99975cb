package faults

import (
	"os/exec"
	"syscall"
	"testing"
	"time"

	"hubcloud/test/harness"
)

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
		harness.Must(t, process.Start())
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
