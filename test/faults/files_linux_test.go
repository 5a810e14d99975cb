package faults

import (
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"hubcloud/test/harness"
)

// TestIdleConnectionsLeaveFiles limits the process to 1,200 open files and opens more idle
// connections than that to each port. Regression: idle connections used up the open files, so
// that new clients got no answer and new hubs no log. A new client must get an answer and a new hub
// its log.
func TestIdleConnectionsLeaveFiles(t *testing.T) {
	t.Parallel()
	s := harness.StartUnder(t, []string{"sh", "-c", `ulimit -n 1200 && exec "$@"`, "sh"})
	first := harness.NewTenant(t, s, "First")
	for _, port := range []struct{ name, address string }{{"API", s.HTTP}, {"operators", s.Admin}} {
		var idle []net.Conn
		for i := range 1300 {
			conn, err := net.Dial("tcp", port.address)
			if err != nil {
				t.Fatalf("connection %d to the port of %s: %v", i, port.name, err)
			}
			defer conn.Close()
			if i%2 == 1 {
				// an incomplete header
				fmt.Fprint(conn, "GET /v1/sites HTTP/1.1\r\nHost: h\r\n")
			}
			idle = append(idle, conn)
		}
		if len(idle) < 1300 {
			t.Fatalf("%d idle connections to the port of %s", len(idle), port.name)
		}
	}
	first.Must(http.MethodGet, "/sites", nil, http.StatusOK)
	harness.NewClient(t, s.Base(), first.Key).Must(http.MethodGet, "/sites", nil, http.StatusOK)
	second := harness.NewTenant(t, s, "Second") // commands work too
	for range 3 {
		hub := harness.NewRawHub(t, s)
		hub.Enroll()
		hub.GoOnline()
		second.Add(hub.Serial)
		hub.EventsFrom("log-1", 1, 20)
		hub.WaitAck("log-1", 20)
		var page struct{ Data []map[string]any }
		second.Must(http.MethodGet, "/hubs/"+hub.ID+"/events", nil, http.StatusOK).JSON(t, &page)
		if len(page.Data) < 20 {
			t.Errorf("new hub: got %d events, want 20", len(page.Data))
		}
	}
}

// TestSilentConnectionsLeaveTheBroker opens 700 silent connections to the MQTT port and then to the
// NATS port. Regression: silent connections used up the broker's connections until their
// timeouts, and two threads that replaced closed ones kept new hubs out. A new hub must connect and
// get its log, connected hubs must stay connected, and commands must work.
func TestSilentConnectionsLeaveTheBroker(t *testing.T) {
	t.Parallel()
	s := harness.StartUnder(t, []string{"sh", "-c", `ulimit -n 1200 && exec "$@"`, "sh"})
	tenant := harness.NewTenant(t, s, "First")
	before := harness.NewRawHub(t, s)
	before.Enroll()
	before.GoOnline()
	for _, port := range []struct{ name, address string }{
		{"hubs", s.MQTT}, {"NATS clients", s.NATS},
	} {
		stop := holdSilent(t, port.address, 700)
		began := time.Now()
		for i := range 3 {
			hub := harness.NewRawHub(t, s) // runs a command
			hub.Enroll()
			attempts := 1
			for err := hub.TryConnect(hub.ID); err != nil; err = hub.TryConnect(hub.ID) {
				if time.Since(began) > time.Minute {
					t.Fatalf(
						"silent connections to the port of %s: hub %d cannot connect: %v",
						port.name, i, err,
					)
				}
				attempts++
			}
			hub.Hello("log-1", 1, 0)
			hub.WaitAck("log-1", 0)
			tenant.Add(hub.Serial)
			hub.EventsFrom("log-1", 1, 20)
			hub.WaitAck("log-1", 20)
			var page struct{ Data []map[string]any }
			tenant.Must(http.MethodGet, "/hubs/"+hub.ID+"/events", nil, http.StatusOK).
				JSON(t, &page)
			if len(page.Data) < 20 {
				t.Errorf("new hub: got %d events, want 20", len(page.Data))
			}
			t.Logf(
				"silent connections to the port of %s: hub %d has its log %s after the first, at "+
					"attempt %d",
				port.name, i, time.Since(began), attempts,
			)
		}
		select {
		case <-before.Lost:
			t.Errorf("silent connections to the port of %s: a hub lost its connection", port.name)
		default:
		}
		stop()
	}
}

// holdSilent keeps n silent connections to an address. It replaces closed ones, two at a time,
// until stop is called.
func holdSilent(t *testing.T, address string, n int) (stop func()) {
	dialing := make(chan struct{}, 2)
	done := make(chan struct{})
	var (
		mu    sync.Mutex
		conns = map[net.Conn]struct{}{}
		all   sync.WaitGroup
		first sync.WaitGroup
	)
	keep := func(opened func()) {
		defer opened()
		for {
			select {
			case <-done:
				return
			case dialing <- struct{}{}:
			}
			conn, err := net.DialTimeout("tcp", address, time.Second)
			<-dialing
			if err != nil {
				continue
			}
			mu.Lock()
			conns[conn] = struct{}{}
			mu.Unlock()
			opened()
			select {
			case <-done: // stop may have missed it
				conn.Close()
			default:
			}
			for err == nil {
				_, err = conn.Read(make([]byte, 1024)) // until the broker closes the connection
			}
			conn.Close()
			mu.Lock()
			delete(conns, conn)
			mu.Unlock()
		}
	}
	first.Add(n)
	for range n {
		all.Go(func() { keep(sync.OnceFunc(first.Done)) })
	}
	first.Wait()
	stop = sync.OnceFunc(func() {
		close(done)
		mu.Lock()
		for conn := range conns {
			conn.Close()
		}
		mu.Unlock()
		all.Wait()
	})
	t.Cleanup(stop)
	return stop
}
