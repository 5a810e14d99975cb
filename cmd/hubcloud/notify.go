package main

import (
	"net"
	"os"
)

// notifyManager tells a service manager how the service is, as systemd's sd_notify(3) has it:
// READY=1, STOPPING=1. Without NOTIFY_SOCKET in the environment there is nobody to tell.
func notifyManager(state string) error {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return nil
	}
	// A name that begins with @ is one outside the file system, as for Go.
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.Write([]byte(state))
	return err
}
