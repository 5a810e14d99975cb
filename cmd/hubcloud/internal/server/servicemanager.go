package server

import (
	"net"
	"os"
)

// notifyServiceManager sends a state such as READY=1 to the service manager, as sd_notify(3) of
// systemd defines it. It does nothing without NOTIFY_SOCKET in the environment.
func notifyServiceManager(state string) error {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return nil
	}
	// For Go as for systemd, a leading @ names a socket outside the file system.
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.Write([]byte(state))
	return err
}
