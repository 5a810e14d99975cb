package faults

import (
	"fmt"
	"net"
	"net/http"
	"testing"

	"hubcloud/test/harness"
)

// TestIdleConnectionsLeaveFiles: idle connections used up the open files of the process, so that new clients were left without an answer and a new hub
// without a log. With 1,200 files and more idle connections than that to each port, a new client is answered and a new hub has its log.
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
				fmt.Fprint(conn, "GET /v1/sites HTTP/1.1\r\nHost: h\r\n") // its header does not come to its end
			}
			idle = append(idle, conn)
		}
		if len(idle) < 1300 {
			t.Fatalf("%d idle connections to the port of %s", len(idle), port.name)
		}
	}
	first.Must(http.MethodGet, "/sites", nil, http.StatusOK)
	harness.NewClient(t, s.Base(), first.Key).Must(http.MethodGet, "/sites", nil, http.StatusOK)
	second := harness.NewTenant(t, s, "Second") // the operator's commands work too
	for range 3 {
		hub := harness.NewRawHub(t, s)
		hub.Enroll()
		hub.Come()
		second.Add(hub.Serial)
		hub.EventsFrom("log-1", 1, 20)
		hub.WaitAck("log-1", 20)
		var page struct{ Data []map[string]any }
		second.Must(http.MethodGet, "/hubs/"+hub.ID+"/events", nil, http.StatusOK).JSON(t, &page)
		if len(page.Data) < 20 {
			t.Errorf("%d events of a hub that came while files were short", len(page.Data))
		}
	}
}
