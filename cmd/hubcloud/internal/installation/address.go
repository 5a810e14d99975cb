package installation

import (
	"net"
	"net/url"
	"strconv"
)

// CheckAddress returns an error unless address is HOST:PORT or :PORT with a port from 0 to 65535.
func CheckAddress(address string) error {
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	return err
}

// IsWildcard reports whether host stands for all addresses of the machine. A client cannot connect
// to such a host.
func IsWildcard(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || ip != nil && ip.IsUnspecified()
}

// Dialable returns an address for clients on this machine: a wildcard host becomes localhost.
func Dialable(bound string) string {
	host, port, err := net.SplitHostPort(bound)
	if err == nil && IsWildcard(host) {
		return net.JoinHostPort("localhost", port)
	}
	return bound
}

// LocalURL returns the http URL under which clients on this machine reach a bound address.
func LocalURL(bound string) string {
	return (&url.URL{Scheme: "http", Host: Dialable(bound)}).String()
}
