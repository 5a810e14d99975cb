package faults

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// startWhenFull starts a running service on a full disk. Regression: the process exited ("write
// service.json: no space left on device") and did not recover. It must wait, start once space is
// free, and stop on SIGTERM meanwhile.
func startWhenFull(
	t *testing.T, s *harness.Service, tenant *harness.Tenant, fill func() (empty func()),
) {
	t.Helper()
	sites := func() string {
		return string(tenant.Must(http.MethodGet, "/sites", nil, http.StatusOK).Body)
	}
	kept := sites()
	s.Stop()
	empty := fill()
	waits := func() {
		t.Helper()
		streamstest.Eventually(t, "the start waits", func() bool {
			select {
			case <-s.Ended():
				t.Fatalf("the process exited, want it to wait:\n%s", s.Log())
			default:
			}
			return strings.Contains(s.Log(), "waiting: the disk is full")
		})
	}
	s.Launch()
	waits()
	if took := s.Stop(); s.ExitCode() != 0 || took > 20*time.Second {
		t.Errorf("after SIGTERM: got exit code %d after %v", s.ExitCode(), took)
	}
	s.Args = append(s.Args, "--start-timeout", "2m")
	s.Launch()
	waits()
	empty()
	began := time.Now()
	s.AwaitReady()
	if took := time.Since(began); took > recovery {
		t.Errorf("ready %v after space was freed, want at most %v", took, recovery)
	}
	if got := sites(); got != kept {
		t.Errorf("sites: got %s, want %s", got, kept)
	}
	tenant.Must(http.MethodPost, "/sites", map[string]string{"name": "New"}, http.StatusCreated)
}

// TestFirstStartOnAFullDisk checks that a first start that failed halfway does not block the start
// once space is free.
func TestFirstStartOnAFullDisk(t *testing.T) {
	t.Parallel()
	dir := streamstest.SmallDisk(t, diskSize)
	empty := streamstest.FillDisk(t, dir)
	s := harness.Joining(t, streamstest.FreeAddress(t), streamstest.FreeAddress(t))
	s.Dir = dir
	s.Args = []string{"--mqtt", s.MQTT, "--nats", s.NATS, "--start-timeout", "2m"}
	s.Launch()
	streamstest.Eventually(t, "the start waits",
		func() bool { return strings.Contains(s.Log(), "waiting: the disk is full") },
	)
	empty()
	began := time.Now()
	s.AwaitReady()
	if took := time.Since(began); took > recovery {
		t.Errorf("ready %v after space was freed, want at most %v", took, recovery)
	}
	harness.NewTenant(t, s, "First")
}

// TestFilesRunOut uses up the inodes of the disk. Regression: the reserve counted bytes only.
// Changes are rejected with the reason, operators are informed, reads work, and the service
// recovers once files can be created, also one that starts.
func TestFilesRunOut(t *testing.T) {
	t.Parallel()
	dir := streamstest.SmallDisk(t, diskSize)
	harness.Install(t, dir)
	s := harness.StartIn(t, dir)
	tenant := harness.NewTenant(t, s, "Files")
	free := useUpInodes(t, dir)
	var ready readinessAnswer
	streamstest.Eventually(t, "/readyz reports the lack of inodes", func() bool {
		_, ready = readiness(t, s)
		return strings.Contains(ready.component("disk").Detail, "files")
	})
	answer, err := tenant.Do(http.MethodPost, "/sites", map[string]string{"name": "Not now"})
	if err != nil || answer.Status != http.StatusServiceUnavailable ||
		!strings.Contains(string(answer.Body), "files") ||
		answer.Header.Get("Retry-After") == "" {
		t.Errorf("change: got %d %s, %v; want 503 with the reason", answer.Status, answer.Body, err)
	}
	tenant.Must(http.MethodGet, "/sites", nil, http.StatusOK)
	if low := s.Metrics().Value(t, "hubcloud_broker_disk_low"); low != 1 {
		t.Errorf("hubcloud_broker_disk_low: got %v, want 1", low)
	}
	if !strings.Contains(s.Log(), "disk almost out of files") {
		t.Error("log: want \"disk almost out of files\"")
	}
	if out, _, _ := harness.RunBinary(t, "doctor", "--data-dir", dir, "--json"); !strings.Contains(
		out, "files (inodes) are free and",
	) {
		t.Errorf("doctor: got\n%s\nwant the lack of inodes", out)
	}
	free()
	streamstest.EventuallyWithin(t, recovery, "a change succeeds again", func() bool {
		answer, err := tenant.Do(http.MethodPost, "/sites", map[string]string{"name": "Now"})
		return err == nil && answer.Status == http.StatusCreated
	})
	startWhenFull(t, s, tenant, func() func() { return useUpInodes(t, dir) })
}

// useUpInodes uses up the inodes of the tmpfs at dir. The returned function frees them.
func useUpInodes(t *testing.T, dir string) (empty func()) {
	t.Helper()
	limit := func(files uint64) {
		t.Helper()
		harness.Must(t, syscall.Mount(
			"tmpfs", dir, "tmpfs", syscall.MS_REMOUNT,
			fmt.Sprintf("size=%d,nr_inodes=%d", diskSize, files),
		))
	}
	var disk syscall.Statfs_t
	harness.Must(t, syscall.Statfs(dir, &disk))
	limit(disk.Files - disk.Ffree)
	return func() { limit(disk.Files) }
}
