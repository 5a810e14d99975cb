package webhook

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"hubcloud/domain"
)

// errForbidden is why nothing is posted to an address.
var errForbidden = errors.New(
	"the address is of this machine, of a private network, or reserved: the service does not post " +
		"to it (--webhook-private-addresses)",
)

// special are networks that are not of the public internet, beside those that package netip knows.
// Among them are those whose addresses contain an IPv4 address that a gateway may connect to.
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"),
	netip.MustParsePrefix("192.0.0.0/24"), netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("192.88.99.0/24"), netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.0/24"),
	netip.MustParsePrefix("240.0.0.0/4"), netip.MustParsePrefix("::/96"),
	netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("100::/64"), netip.MustParsePrefix("2001::/23"),
	netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("2002::/16"),
	netip.MustParsePrefix("3fff::/20"), netip.MustParsePrefix("5f00::/16"),
	netip.MustParsePrefix("fec0::/10"),
}

// public reports whether an address is of the public internet.
func public(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	if !addr.IsGlobalUnicast() || addr.IsPrivate() {
		return false
	}
	for _, network := range special {
		if network.Contains(addr) {
			return false
		}
	}
	return true
}

// guarded is the Control of a net.Dialer that connects to public addresses only. It gets the address
// that is connected to, whatever the name was resolved to before.
func guarded(_, address string, _ syscall.RawConn) error {
	addr, err := netip.ParseAddrPort(address)
	if err != nil || !public(addr.Addr()) {
		return errForbidden
	}
	return nil
}

// checkURL returns an invalid_request for an address that nothing can be posted to. Names are
// resolved only when something is posted.
func checkURL(text string, private bool) error {
	if len(text) > domain.MaxWebhookURL {
		return domain.Errorf(
			domain.CodeInvalidRequest, "url: must be at most %d bytes", domain.MaxWebhookURL,
		)
	}
	if err := CheckURL(text); err != nil {
		return domain.Errorf(
			domain.CodeInvalidRequest,
			"url: must be https://… or http://…, with a port up to 65535 if any, without user and fragment",
		)
	}
	u, _ := url.Parse(text) // CheckURL has parsed it
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	addr, err := netip.ParseAddr(host)
	local := host == "localhost" || strings.HasSuffix(host, ".localhost")
	if !private && (local || err == nil && !public(addr)) {
		return domain.Errorf(domain.CodeInvalidRequest, "url: %s", errForbidden)
	}
	return nil
}

// newTransport returns what posts requests. It uses no proxy: the dialer must see the receiver's
// address.
func newTransport(private bool) *http.Transport {
	dialer := &net.Dialer{Timeout: connectTimeout, KeepAlive: 30 * time.Second}
	if !private {
		dialer.Control = guarded
	}
	return &http.Transport{
		DialContext: dialer.DialContext, TLSHandshakeTimeout: connectTimeout,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
		IdleConnTimeout: time.Minute, MaxIdleConns: requests, MaxIdleConnsPerHost: 2,
		MaxResponseHeaderBytes: 32 << 10,
	}
}

// errorText returns why a request failed, for the organization. It names no address that a name was
// resolved to.
func errorText(err error) string {
	var rejection *Rejection
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case errors.As(err, &rejection):
		return rejection.Error()
	case errors.Is(err, errForbidden):
		return errForbidden.Error()
	case errors.As(err, &dns):
		return fmt.Sprintf("the name %s was not resolved", dns.Name)
	case errors.As(err, &op) && op.Op == "dial":
		return "no connection: " + op.Err.Error()
	}
	var failed *url.Error
	if errors.As(err, &failed) {
		return failed.Err.Error()
	}
	return err.Error()
}
