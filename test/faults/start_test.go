package faults

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// TestStartThatCannot: a replica waits for servers that are not there, until it is told to stop or
// --start-timeout is over, and does not wait for what does not pass by itself. (That it starts once
// everything is there is tried by TestOutages.)
func TestStartThatCannot(t *testing.T) {
	t.Parallel()
	s := harness.Start(t)
	nobody := harness.FreeAddress(t)
	// replica starts a replica on the broker and the database of the service, with more arguments.
	replica := func(t *testing.T, args ...string) *harness.Service {
		t.Helper()
		all := append([]string{
			"--roles", "api", "--nats-url", "nats://" + s.NATS, "--nats-credentials",
			filepath.Join(s.Dir, "nats-credentials.json"),
			"--public-mqtt", s.MQTT, "--postgres-url",
			"postgres://hubcloud@localhost/postgres?host=" + filepath.Join(
				s.Dir, "postgres", "socket",
			),
			"--ca-cert", filepath.Join(s.Dir, "ca", "ca.pem"), "--ca-key",
			filepath.Join(s.Dir, "ca", "ca-key.pem"),
		}, args...)
		r := harness.Joining(t, harness.Place{}, s.MQTT, s.NATS, all...)
		r.Launch()
		return r
	}
	// ends waits until a replica has ended, and returns what it printed. at most is what it may
	// take on a machine that is busy with something else.
	ends := func(t *testing.T, r *harness.Service, code int) string {
		t.Helper()
		select {
		case <-r.Ended():
		case <-time.After(time.Minute):
			t.Fatalf("goes on:\n%s", r.Log())
		}
		if r.ExitCode() != code {
			t.Errorf("exit code %d, wanted %d:\n%s", r.ExitCode(), code, r.Log())
		}
		return r.Log()
	}
	t.Run("it is told to stop", func(t *testing.T) {
		t.Parallel()
		r := replica(t, "--nats-url", "nats://"+nobody)
		streamstest.Eventually(t, "it waits",
			func() bool { return strings.Contains(r.Log(), "msg=waiting") },
		)
		began := time.Now()
		r.Signal(syscall.SIGTERM)
		ends(t, r, 0)
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("took %s", took)
		}
	})
	t.Run("it is told to stop while nobody answers", func(t *testing.T) {
		t.Parallel()
		net := newNetwork(t)
		if net == nil {
			t.Skip("without a network of its own nobody is silent")
		}
		silent := net.prefix + ".250" // nobody has that address, and nobody says so at once
		r := replica(t, "--nats-url", "nats://"+silent+":4222")
		streamstest.Eventually(t, "it tries",
			func() bool { return exists(filepath.Join(r.Dir, "service.json")) },
		)
		began := time.Now()
		r.Signal(syscall.SIGTERM)
		ends(t, r, 0)
		if took := time.Since(began); took > 8*time.Second {
			t.Errorf("took %s", took)
		}
	})
	t.Run("there is no broker in time", func(t *testing.T) {
		t.Parallel()
		log := ends(t, replica(t, "--nats-url", "nats://"+nobody, "--start-timeout", "2s"), 1)
		if want := "after 2s (--start-timeout) still waiting for the broker: "; !strings.Contains(
			log, want,
		) {
			t.Errorf("not in the log: %s\n%s", want, log)
		}
	})
	t.Run("there is no database in time", func(t *testing.T) {
		t.Parallel()
		log := ends(
			t,
			replica(
				t, "--postgres-url", "postgres://hubcloud@"+nobody+"/postgres",
				"--start-timeout", "4s",
			),
			1,
		)
		if want := "after 4s (--start-timeout) still waiting for the database: "; !strings.Contains(
			log, want,
		) {
			t.Errorf("not in the log: %s\n%s", want, log)
		}
	})
	t.Run("the broker's password is wrong", func(t *testing.T) {
		t.Parallel()
		text, err := os.ReadFile(filepath.Join(s.Dir, "nats-credentials.json"))
		if err != nil {
			t.Fatal(err)
		}
		var credentials map[string]any
		if err := json.Unmarshal(text, &credentials); err != nil {
			t.Fatal(err)
		}
		for _, user := range credentials["users"].(map[string]any) {
			user.(map[string]any)["password"] = "wrong"
		}
		if text, err = json.Marshal(credentials); err != nil {
			t.Fatal(err)
		}
		wrong := filepath.Join(t.TempDir(), "credentials.json")
		if err := os.WriteFile(wrong, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if log := ends(t, replica(t, "--nats-credentials", wrong), 1); !strings.Contains(
			log, "Authorization Violation",
		) {
			t.Errorf("it does not say why:\n%s", log)
		}
	})
	t.Run("the database knows no such role", func(t *testing.T) {
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
			t.Errorf("it does not say why:\n%s", log)
		}
	})
	t.Run("there are no three servers for three copies", func(t *testing.T) {
		t.Parallel()
		if log := ends(t, replica(t, "--log-replicas", "3"), 1); !strings.Contains(
			log, "replicas",
		) {
			t.Errorf("it does not say why:\n%s", log)
		}
	})
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
