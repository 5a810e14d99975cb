package server

import (
	"net"
	"path/filepath"
	"testing"

	"hubcloud/streams/streamstest"
)

func TestNotifyServiceManager(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	t.Setenv("NOTIFY_SOCKET", path)
	if err := notifyServiceManager("READY=1"); err == nil {
		t.Error("without a listener: got no error")
	}
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	streamstest.Must(t, err)
	defer manager.Close()
	streamstest.Must(t, notifyServiceManager("READY=1"))
	received := make([]byte, 64)
	n, err := manager.Read(received)
	if err != nil || string(received[:n]) != "READY=1" {
		t.Errorf("the manager received %q, %v, want READY=1", received[:n], err)
	}
	t.Setenv("NOTIFY_SOCKET", "")
	if err := notifyServiceManager("READY=1"); err != nil {
		t.Errorf("without a manager: %v", err)
	}
}
