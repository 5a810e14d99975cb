package observe

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// readiness is the body of /readyz.
type readiness struct {
	Ready, Degraded bool
	Components      []struct {
		Name, Detail, Action string
		OK, Degraded         bool
	}
}

// ready requests /readyz from the admin port.
func ready(t *testing.T, s *harness.Service) (int, readiness) {
	t.Helper()
	answer := harness.Open(t, http.MethodGet, "http://"+s.Admin+"/readyz")
	var body readiness
	if err := json.Unmarshal(answer.Body, &body); err != nil {
		t.Fatalf("%s: %v", answer.Body, err)
	}
	return answer.Status, body
}

// TestOutage checks what the service does while its database is killed, and while it hangs. A
// regression: lists, and changes that were stored, were answered with 500 while PostgreSQL
// restarted; and the hanging database made the process unready, and so every replica, though most
// requests need no database. Reads wait and then get 503; changes succeed; the process stays ready,
// and is degraded while the database hangs, with the reason and advice.
func TestOutage(t *testing.T) {
	t.Parallel()
	s := harness.Start(t)
	tenant := harness.NewTenant(t, s, "Outage")
	hub := harness.NewRawHub(t, s)
	hub.Enroll()
	hub.GoOnline()
	tenant.Add(hub.Serial)
	paths := []string{
		"/sites",
		"/sites/" + tenant.Site,
		"/hubs",
		"/hubs/" + hub.ID,
		"/members",
		"/invitations",
	}

	// Killed: requests wait until it runs again. On a slow machine that can take longer than they
	// wait for.
	answered := func(method, path string, body any) {
		t.Helper()
		streamstest.Eventually(t, path+" is answered", func() bool {
			answer, err := tenant.Try(method, path, body)
			if err != nil || answer.Status != http.StatusOK &&
				answer.ErrorType() != "service_unavailable" {
				t.Fatalf("%s %s: got %d %s, %v", method, path, answer.Status, answer.Body, err)
			}
			return answer.Status == http.StatusOK
		})
	}
	for round := range 3 {
		harness.Must(t, syscall.Kill(postgres(t, s)[0], syscall.SIGKILL))
		if status, body := ready(t, s); status != http.StatusOK {
			t.Errorf("after the database was killed: got %d %+v, want 200", status, body)
		}
		began := time.Now()
		for _, path := range paths {
			answered(http.MethodGet, path, nil)
		}
		answered(http.MethodPatch, "/hubs/"+hub.ID, map[string]string{
			"name": fmt.Sprintf("Hub %d", round),
		})
		t.Logf("all reads and a change after a kill: %s", time.Since(began))
		streamstest.Eventually(
			t, "the database is back", func() bool { return len(postgres(t, s)) > 3 },
		)
	}

	// Hanging: reads get 503, and a change is stored and answered.
	const unhealthy, healthy = `msg="component unhealthy"`, `msg="component healthy again"`
	streamstest.Eventually(t, "the process is ready after the kills", func() bool {
		_, body := ready(t, s)
		return body.Ready && !body.Degraded &&
			strings.Count(s.Log(), unhealthy) == strings.Count(s.Log(), healthy)
	})
	before := s.Log()
	all := postgres(t, s)
	for _, pid := range all {
		harness.Must(t, syscall.Kill(pid, syscall.SIGSTOP))
	}
	resume := func() {
		for _, pid := range all {
			_ = syscall.Kill(pid, syscall.SIGCONT) // it may have ended
		}
	}
	defer resume()
	var asking sync.WaitGroup
	began := time.Now()
	for _, path := range paths {
		asking.Go(func() {
			answer, err := tenant.Try(http.MethodGet, path, nil)
			if err != nil || answer.Status != http.StatusServiceUnavailable ||
				answer.ErrorType() != "service_unavailable" ||
				answer.Header.Get("Retry-After") == "" {
				t.Errorf(
					"%s while the database hangs: %d %s, %v", path, answer.Status, answer.Body, err,
				)
			}
		})
	}
	asking.Go(func() {
		answer, err := tenant.Try(
			http.MethodPost, "/sites", map[string]string{"name": "Made meanwhile"},
		)
		if err != nil || answer.Status != http.StatusCreated {
			t.Errorf("a site while the database hangs: %d %s, %v", answer.Status, answer.Body, err)
		}
	})
	asking.Go(func() {
		answer, err := tenant.Try(
			http.MethodPatch, "/sites/"+tenant.Site, map[string]string{"name": "Renamed meanwhile"},
		)
		if err != nil || answer.Status != http.StatusServiceUnavailable ||
			!strings.Contains(string(answer.Body), "is stored") {
			t.Errorf(
				"another name while the database hangs: %d %s, %v", answer.Status, answer.Body, err,
			)
		}
	})
	asking.Wait()
	t.Logf("answers while the database hangs: %s", time.Since(began))
	var body readiness
	streamstest.Eventually(t, "the process is degraded", func() bool {
		var status int
		status, body = ready(t, s)
		if status != http.StatusOK || !body.Ready {
			t.Fatalf("the database hangs: got %d %+v, want 200 and ready", status, body)
		}
		return body.Degraded
	})
	for _, c := range body.Components {
		if bad := c.Name == "read_models"; c.OK == bad || c.Degraded != bad ||
			bad && (!strings.Contains(c.Detail, "database") || c.Action == "") ||
			!bad && c.Action != "" {
			t.Errorf(
				"got component %+v, want only read_models unhealthy, with a reason and advice", c,
			)
		}
	}
	for metric, want := range map[string]float64{"hubcloud_ready": 0, "hubcloud_degraded": 1} {
		if got := s.Metrics().Value(t, metric, "component", "read_models"); got != want {
			t.Errorf("%s of read_models: got %v, want %v", metric, got, want)
		}
	}
	public := harness.Open(t, http.MethodGet, s.Public()+"/readyz")
	const degraded = `{"status":"degraded","degraded":["read_models"]}`
	if got := strings.TrimSpace(string(public.Body)); public.Status != http.StatusOK ||
		got != degraded {
		t.Errorf("public /readyz: got %d %s, want 200 %s", public.Status, got, degraded)
	}
	if out, stderr, code := harness.RunBinary(t, "ready", "--data-dir", s.Dir); code != 0 ||
		!strings.Contains(out, "degraded") || !strings.Contains(out, "read_models") {
		t.Errorf("hubcloud ready: got exit code %d, %q %q, want 0 and degraded", code, out, stderr)
	}
	resume()
	streamstest.Eventually(t, "the process is ready again",
		func() bool { _, body := ready(t, s); return body.Ready && !body.Degraded },
	)
	for _, text := range []string{unhealthy, healthy} {
		streamstest.Eventually(t, "one line "+text, func() bool {
			return strings.Count(s.Log(), text)-strings.Count(before, text) == 1
		})
	}
	var sites struct{ Data []struct{ Name string } }
	streamstest.Eventually(t, "what was changed is read", func() bool {
		tenant.For(t).Get("/sites").JSON(t, &sites)
		return len(sites.Data) == 2 && sites.Data[0].Name == "Renamed meanwhile" &&
			sites.Data[1].Name == "Made meanwhile"
	})
}

// postgres returns the processes of the private database, the listener first.
func postgres(t *testing.T, s *harness.Service) (pids []int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(s.Dir, "postgres", "*", "postmaster.pid"))
	if err != nil || len(files) != 1 {
		return nil
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		return nil
	}
	first, _, _ := strings.Cut(string(text), "\n")
	main, err := strconv.Atoi(first)
	if err != nil {
		return nil
	}
	pids = append(pids, main)
	all, err := filepath.Glob("/proc/[0-9]*/stat")
	harness.Must(t, err)
	for _, path := range all {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(rest)
		if len(fields) > 1 && fields[1] == first {
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
