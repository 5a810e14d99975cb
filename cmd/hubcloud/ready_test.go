package main

import (
	"bytes"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

// TestReady: a container's health check tells by its exit code whether the service is ready, and
// says what is not.
func TestReady(t *testing.T) {
	t.Parallel()
	dir := dataDir(t.TempDir())
	ready := func() (string, int) {
		var out bytes.Buffer
		code := Run(
			t.Context(), []string{"ready", "--data-dir", string(dir)},
			Streams{Out: &out, Err: &out},
		)
		return out.String(), code
	}
	if said, code := ready(); code != exitFailed ||
		!strings.Contains(said, "no service is running") {
		t.Errorf("where none runs: %d %s", code, said)
	}
	body := `{"ready":false,"components":[{"name":"broker","ok":false,"detail":"gone"},{"name":"access","ok":true,"detail":"ok"}]}`
	service := httptest.NewServer(
		http.HandlerFunc(
			func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) },
		),
	)
	defer service.Close()
	_, port, err := net.SplitHostPort(service.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	// The address of all interfaces is none to connect to.
	if err := dir.writeEndpoints(endpoints{Admin: "[::]:" + port}); err != nil {
		t.Fatal(err)
	}
	if said, code := ready(); code != exitFailed || !strings.Contains(said, "broker: gone") ||
		strings.Contains(said, "access") {
		t.Errorf("one that is not ready: %d %s", code, said)
	}
	body = `{"ready":true,"components":[]}`
	if said, code := ready(); code != exitOK {
		t.Errorf("one that is ready: %d %s", code, said)
	}
}

// TestNotifyManager tells a service manager, as systemd listens.
func TestNotifyManager(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	t.Setenv("NOTIFY_SOCKET", path)
	if err := notifyManager("READY=1"); err == nil {
		t.Error("nobody listens, and no error")
	}
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	if err := notifyManager("READY=1"); err != nil {
		t.Fatal(err)
	}
	heard := make([]byte, 64)
	n, err := manager.Read(heard)
	if err != nil || string(heard[:n]) != "READY=1" {
		t.Errorf("the manager hears %q, %v", heard[:n], err)
	}
	t.Setenv("NOTIFY_SOCKET", "")
	if err := notifyManager("READY=1"); err != nil {
		t.Errorf("without a manager: %v", err)
	}
}
