package httpapi

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// clientAddress returns the address that a request came from. For a request from a trusted proxy it
// is the last address in X-Forwarded-For that is not a trusted proxy's: the client can forge
// anything before it. The search ends at a malformed entry, with the address of the proxy that
// added it.
func (a *api) clientAddress(r *http.Request) netip.Addr {
	addr, _ := parseAddress(r.RemoteAddr)
	if !a.isTrustedProxy(addr) {
		return addr
	}
	for _, line := range slices.Backward(r.Header["X-Forwarded-For"]) {
		for more := true; more; {
			comma := strings.LastIndexByte(line, ',')
			hop, ok := parseAddress(strings.Trim(line[comma+1:], " \t"))
			if !ok {
				return addr
			}
			addr = hop
			if !a.isTrustedProxy(addr) {
				return addr
			}
			if more = comma >= 0; more {
				line = line[:comma]
			}
		}
	}
	return addr
}

func (a *api) isTrustedProxy(addr netip.Addr) bool {
	for _, network := range a.TrustedProxies {
		if network.Contains(addr) {
			return true
		}
	}
	return false
}

// parseAddress parses an address with or without a port. An IPv4 address over IPv6 becomes IPv4.
func parseAddress(s string) (netip.Addr, bool) {
	if both, err := netip.ParseAddrPort(s); err == nil {
		return both.Addr().Unmap().WithZone(""), true
	}
	addr, err := netip.ParseAddr(s)
	return addr.Unmap().WithZone(""), err == nil
}
