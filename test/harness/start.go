package harness

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"hubcloud/streams/streamstest"
)

// startTimeout bounds a start. A first start creates a database.
const startTimeout = 4 * time.Minute

// Start runs `hubcloud serve` with the additional arguments, on a data directory of its own, which
// has an installation without organizations, and free ports, and waits until it is ready. Directory
// and ports stay the same over restarts. The service is stopped when the test ends.
func Start(t testing.TB, args ...string) *Service {
	t.Helper()
	return StartIn(t, dataDir(t, args), args...)
}

// StartWith is Start with additional environment variables, as NAME=VALUE.
func StartWith(t testing.TB, environment []string, args ...string) *Service {
	t.Helper()
	s := newService(t, t.TempDir(), args)
	s.Environment = environment
	s.launch()
	return s
}

// StartDev is StartWith of `hubcloud dev`. It waits until the demo's hubs are online, and returns a
// client with the demo's key.
func StartDev(t testing.TB, environment []string) (*Service, *Client) {
	t.Helper()
	s := newService(t, t.TempDir(), nil)
	s.Command, s.Environment = "dev", environment
	s.launch()
	client := NewClient(t, s.Public()+"/v1", s.demoKey())
	var hubs struct {
		Data []struct{ Connection struct{ Status string } }
	}
	streamstest.Eventually(t, "the demo's hubs are online", func() bool {
		client.Must(http.MethodGet, "/hubs", nil, http.StatusOK).JSON(t, &hubs)
		online := 0
		for _, hub := range hubs.Data {
			if hub.Connection.Status == "online" {
				online++
			}
		}
		return online == 3
	})
	return s, client
}

// demoKey returns the API key of the demo in the data directory.
func (s *Service) demoKey() string {
	s.t.Helper()
	var demo struct{ Key string }
	streamstest.Eventually(s.t, "the demo has a key", func() bool {
		text, err := os.ReadFile(filepath.Join(s.Dir, "dev.json"))
		return err == nil && json.Unmarshal(text, &demo) == nil && demo.Key != ""
	})
	return demo.Key
}

// StartUnder is Start under a command, for example one that lowers a limit.
func StartUnder(t testing.TB, under []string, args ...string) *Service {
	t.Helper()
	s := newService(t, dataDir(t, args), args)
	s.Under = under
	s.launch()
	return s
}

// StartAs is Start with arguments that depend on the service's addresses and data directory.
func StartAs(t testing.TB, arguments func(s *Service) []string) *Service {
	t.Helper()
	s := newService(t, t.TempDir(), nil)
	s.Args = arguments(s)
	s.launch()
	return s
}

// StartIn is Start on the given data directory.
func StartIn(t testing.TB, dir string, args ...string) *Service {
	t.Helper()
	s := newService(t, dir, args)
	s.launch()
	return s
}

// newService returns a service with free ports that has not started yet.
func newService(t testing.TB, dir string, args []string) *Service {
	t.Helper()
	return &Service{
		t: t, Dir: dir, Args: args, running: &running{},
		HTTP: streamstest.FreeAddress(t), Admin: streamstest.FreeAddress(t),
		MQTT: streamstest.FreeAddress(t), NATS: streamstest.FreeAddress(t),
	}
}

// Replica starts another process that serves the API on this service's broker and database. The
// replica is stopped before the service.
func (s *Service) Replica(args ...string) *Service {
	s.t.Helper()
	return s.ReplicaOf("", args...)
}

// ReplicaOf is Replica with another binary, such as one from BuildWith.
func (s *Service) ReplicaOf(program string, args ...string) *Service {
	s.t.Helper()
	database := url.Values{
		"host":    {filepath.Join(s.Dir, "postgres", "socket")},
		"port":    {"5432"},
		"user":    {"hubcloud"},
		"sslmode": {"disable"},
	}
	r := &Service{
		t: s.t, Dir: s.t.TempDir(), Program: program, running: &running{},
		HTTP: streamstest.FreeAddress(s.t), Admin: streamstest.FreeAddress(s.t),
		MQTT: s.MQTT, NATS: s.NATS,
		Args: append([]string{
			"--roles", "api", "--nats-url", "nats://" + s.NATS, "--nats-credentials",
			filepath.Join(s.Dir, "nats-credentials.json"), "--public-mqtt", s.MQTT,
			"--postgres-url",
			(&url.URL{Scheme: "postgres", Path: "/postgres", RawQuery: database.Encode()}).String(),
			"--ca-cert", filepath.Join(s.Dir, "ca", "ca.pem"), "--ca-key",
			filepath.Join(s.Dir, "ca", "ca-key.pem"),
		}, args...),
	}
	r.launch()
	return r
}

// Join starts a process with all roles on a broker and a database that the arguments name. The
// addresses mqtt and nats are those that the broker announces.
func Join(t testing.TB, mqtt, nats string, args ...string) *Service {
	t.Helper()
	s := Joining(t, mqtt, nats, args...)
	s.Begin()
	return s
}

// Joining is Join, but does not start the process. Call Begin, or Launch and AwaitReady.
func Joining(t testing.TB, mqtt, nats string, args ...string) *Service {
	t.Helper()
	s := newService(t, t.TempDir(), args)
	s.MQTT, s.NATS, s.joined = mqtt, nats, true
	s.stopWithTest()
	return s
}

// launch starts the service and stops it when the test ends.
func (s *Service) launch() {
	s.t.Helper()
	s.Begin()
	s.stopWithTest()
}

// stopWithTest stops the service when the test ends.
func (s *Service) stopWithTest() {
	s.t.Cleanup(func() {
		if s.process == nil {
			return
		}
		s.Stop()
		if s.t.Failed() {
			s.t.Logf(
				"last log lines of the service, without successful requests:\n%s",
				s.log.without("level=INFO msg=request"),
			)
		}
	})
}
