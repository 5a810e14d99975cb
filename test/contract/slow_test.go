package contract

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"hubcloud/test/harness"
)

// slowSenders tests that clients that do not finish their request are answered or disconnected
// after a while, and delay no other client.
func slowSenders(t *testing.T, c *harness.Target) {
	if !strings.HasPrefix(c.Public, "http://") {
		t.Skip("NOT TRIED: raw bytes over TLS")
	}
	tenant := c.Tenant("Slow")
	starts := []string{
		"", "G", "GET /v1/sites HTTP/1.1\r\nHost: x\r\n",
		"POST /v1/sites HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + tenant.Key +
			"\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"name\":",
		"POST /v1/sites HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + tenant.Key +
			"\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"nam",
		// without a key
		"POST /v1/sites HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
		"POST /link/v1/certificates HTTP/1.1\r\nHost: x\r\nContent-Type: " +
			"application/json\r\nContent-Length: 100\r\n\r\n{",
	}
	var waiting sync.WaitGroup
	for i := range 10 * len(starts) {
		start := starts[i%len(starts)]
		waiting.Go(func() {
			conn, err := net.Dial("tcp", strings.TrimPrefix(c.Public, "http://"))
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			if _, err := io.WriteString(conn, start); err != nil {
				t.Error(err)
				return
			}
			if start == "" {
				return // connected only
			}
			if err := conn.SetReadDeadline(time.Now().Add(2 * time.Minute)); err != nil {
				t.Error(err)
				return
			}
			answer, err := io.ReadAll(conn)
			if err != nil && !strings.Contains(err.Error(), "reset") {
				t.Errorf("%.60q: got %v, want an answer or the connection closed", start, err)
			}
			if strings.HasPrefix(string(answer), "HTTP/1.1 5") ||
				strings.HasPrefix(string(answer), "HTTP/1.1 2") {
				t.Errorf("%.60q: got %.200q, want an error of the client", start, answer)
			}
		})
	}
	for range 20 {
		began := time.Now()
		tenant.Get("/sites")
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("concurrent request took %s, want at most 20 s", took)
		}
	}
	waiting.Wait()
}
