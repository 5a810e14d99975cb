package server

import (
	"fmt"
	"net"
)

// checkPorts returns an error that names the flag if a port is taken. Broker and database need some
// time to start, and the ports are opened after that.
func (c Config) checkPorts() error {
	addresses := []struct {
		flag, address string
		used          bool
	}{
		{"admin", c.Admin, true},
		{"http", c.HTTP, c.has(roleAPI)},
		{"http-redirect", c.HTTPRedirect, c.has(roleAPI) && c.HTTPRedirect != ""},
		{"mqtt", c.MQTT, c.NATSURL == ""},
		{"nats", c.NATS, c.NATSURL == ""},
	}
	for _, a := range addresses {
		if !a.used {
			continue
		}
		listener, err := net.Listen("tcp", a.address)
		if err != nil {
			return fmt.Errorf("--%s: %w", a.flag, err)
		}
		// Only at the end, so that two flags with one address are found too.
		defer listener.Close()
	}
	return nil
}
