package faults

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// TestStartWithoutServers checks that a starting replica waits for missing servers until SIGTERM or
// --start-timeout, and fails at once for permanent errors. TestOutages covers the start after the
// servers have appeared.
func TestStartWithoutServers(t *testing.T) {
	t.Parallel()
	s := harness.Start(t)
	unused := streamstest.FreeAddress(t)
	// starts starts a replica on the service's broker and database, with additional arguments.
	starts := func(t *testing.T, role string, args ...string) *harness.Service {
		t.Helper()
		all := append([]string{
			"--roles", role, "--nats-url", "nats://" + s.NATS, "--nats-credentials",
			filepath.Join(s.Dir, "nats-credentials.json"),
			"--public-mqtt", s.MQTT, "--postgres-url",
			"postgres://hubcloud@localhost/postgres?host=" + filepath.Join(
				s.Dir, "postgres", "socket",
			),
			"--ca-cert", filepath.Join(s.Dir, "ca", "ca.pem"), "--ca-key",
			filepath.Join(s.Dir, "ca", "ca-key.pem"),
		}, args...)
		r := harness.Joining(t, s.MQTT, s.NATS, all...)
		r.Launch()
		return r
	}
	replica := func(t *testing.T, args ...string) *harness.Service { return starts(t, "api", args...) }
	// ends waits until a replica has exited with the code and returns its output.
	ends := func(t *testing.T, r *harness.Service, code int) string {
		t.Helper()
		select {
		case <-r.Ended():
		case <-time.After(time.Minute):
			t.Fatalf("still running:\n%s", r.Log())
		}
		if r.ExitCode() != code {
			t.Errorf("got exit code %d, want %d:\n%s", r.ExitCode(), code, r.Log())
		}
		return r.Log()
	}
	t.Run("a bridge alone", func(t *testing.T) {
		// Regression: the admin port of a replica without the role api did not report readiness.
		t.Parallel()
		r := starts(t, "bridge")
		streamstest.Eventually(t, "the replica is ready", func() bool {
			answer, err := http.Get("http://" + r.Admin + "/readyz")
			if err != nil {
				return false
			}
			answer.Body.Close()
			return answer.StatusCode == http.StatusOK
		})
		r.Signal(syscall.SIGTERM)
		ends(t, r, 0)
	})
	t.Run("SIGTERM", func(t *testing.T) {
		t.Parallel()
		r := replica(t, "--nats-url", "nats://"+unused)
		streamstest.Eventually(t, "the replica waits",
			func() bool { return strings.Contains(r.Log(), "msg=waiting") },
		)
		began := time.Now()
		r.Signal(syscall.SIGTERM)
		ends(t, r, 0)
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("shutdown took %s, want at most 10 s", took)
		}
	})
	t.Run("SIGTERM while a server is silent", func(t *testing.T) {
		t.Parallel()
		r := replica(t, "--nats-url", "nats://"+silentAddress(t))
		streamstest.Eventually(t, "the replica tries to connect",
			func() bool { return exists(filepath.Join(r.Dir, "service.json")) },
		)
		began := time.Now()
		r.Signal(syscall.SIGTERM)
		ends(t, r, 0)
		if took := time.Since(began); took > 8*time.Second {
			t.Errorf("shutdown took %s, want at most 8 s", took)
		}
	})
	t.Run("no broker within the timeout", func(t *testing.T) {
		t.Parallel()
		log := ends(t, replica(t, "--nats-url", "nats://"+unused, "--start-timeout", "2s"), 1)
		if want := "after 2s (--start-timeout) still waiting for the broker: "; !strings.Contains(
			log, want,
		) {
			t.Errorf("log: want %s, got\n%s", want, log)
		}
	})
	t.Run("the time is over within a step", func(t *testing.T) {
		t.Parallel()
		_, errs, code := harness.RunBinary(
			t, "serve", "--data-dir", t.TempDir(), "--environment", "dev", "--http", "127.0.0.1:0",
			"--admin", "127.0.0.1:0", "--mqtt", "127.0.0.1:0", "--nats", "127.0.0.1:0",
			"--start-timeout", "100ms",
		)
		if want := "100ms (--start-timeout) were too short: "; code != 1 ||
			!strings.Contains(errs, want) {
			t.Errorf("got exit code %d, want 1 and %s in\n%s", code, want, errs)
		}
	})
	t.Run("the broker's password is wrong", func(t *testing.T) {
		t.Parallel()
		text, err := os.ReadFile(filepath.Join(s.Dir, "nats-credentials.json"))
		harness.Must(t, err)
		var credentials map[string]any
		harness.Must(t, json.Unmarshal(text, &credentials))
		for _, user := range credentials["users"].(map[string]any) {
			user.(map[string]any)["password"] = "wrong"
		}
		if text, err = json.Marshal(credentials); err != nil {
			t.Fatal(err)
		}
		wrong := filepath.Join(t.TempDir(), "credentials.json")
		harness.Must(t, os.WriteFile(wrong, text, 0o600))
		if log := ends(t, replica(t, "--nats-credentials", wrong), 1); !strings.Contains(
			log, "Authorization Violation",
		) {
			t.Errorf("log: want the reason, got\n%s", log)
		}
	})
	t.Run("unknown database role", func(t *testing.T) {
		t.Parallel()
		log := ends(
			t,
			replica(
				t,
				"--postgres-url",
				"postgres://somebody@localhost/postgres?host="+filepath.Join(
					s.Dir, "postgres", "socket",
				),
			),
			1,
		)
		if !strings.Contains(log, "somebody") {
			t.Errorf("log: want the reason, got\n%s", log)
		}
	})
	t.Run("three copies on fewer than three servers", func(t *testing.T) {
		t.Parallel()
		if log := ends(t, replica(t, "--log-replicas", "3"), 1); !strings.Contains(
			log, "replicas",
		) {
			t.Errorf("log: want the reason, got\n%s", log)
		}
	})
}

// silentAddress returns an address that packets to get no answer from: nobody accepts the connections
// that wait there, and no further one may wait.
func silentAddress(t *testing.T) string {
	t.Helper()
	listener, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		t.Cleanup(func() { syscall.Close(listener) })
		err = syscall.Bind(listener, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	}
	if err == nil {
		err = syscall.Listen(listener, 0)
	}
	harness.Must(t, err)
	bound, err := syscall.Getsockname(listener)
	harness.Must(t, err)
	address := fmt.Sprintf("127.0.0.1:%d", bound.(*syscall.SockaddrInet4).Port)
	for {
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if err != nil {
			return address
		}
		t.Cleanup(func() { conn.Close() })
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
