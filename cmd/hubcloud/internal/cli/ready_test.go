package cli

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"hubcloud/cmd/hubcloud/internal/installation"
	"hubcloud/streams/streamstest"
)

func TestReady(t *testing.T) {
	t.Parallel()
	dir := installation.Dir(t.TempDir())
	ready := func() (string, int) {
		return said(t, "ready", "--data-dir", string(dir))
	}
	if said, code := ready(); code != exitFailed ||
		!strings.Contains(said, "no service is running") {
		t.Errorf("without a service: exit code %d, printed %q", code, said)
	}
	body := `{"ready":false,"components":[{"name":"broker","ok":false,"detail":"gone"},` +
		`{"name":"access","ok":true,"detail":"ok"}]}`
	service := httptest.NewServer(
		http.HandlerFunc(
			func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) },
		),
	)
	defer service.Close()
	_, port, err := net.SplitHostPort(service.Listener.Addr().String())
	streamstest.Must(t, err)
	// The command must replace the wildcard address.
	streamstest.Must(t, dir.WriteEndpoints(installation.Endpoints{Admin: "[::]:" + port}))
	if said, code := ready(); code != exitFailed || !strings.Contains(said, "broker: gone") ||
		strings.Contains(said, "access") {
		t.Errorf("not ready: exit code %d, printed %q", code, said)
	}
	body = `{"ready":true,"degraded":true,"components":[{"name":"disk","detail":"full"}]}`
	if said, code := ready(); code != exitOK || !strings.Contains(said, "degraded") ||
		!strings.Contains(said, "disk: full") {
		t.Errorf("degraded: exit code %d, printed %q", code, said)
	}
	body = `{"ready":true,"components":[]}`
	if said, code := ready(); code != exitOK {
		t.Errorf("ready: exit code %d, printed %q", code, said)
	}
}
