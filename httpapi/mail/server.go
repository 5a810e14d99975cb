package mail

import (
	"errors"
	"fmt"
	"net"
	netmail "net/mail"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// TLS is how a connection to a mail server is encrypted.
type TLS int

const (
	// TLSImplicit encrypts from the first byte: smtps (RFC 8314).
	TLSImplicit TLS = iota
	// TLSRequired begins in the clear and goes no further without STARTTLS.
	TLSRequired
	// TLSOffered uses STARTTLS when the server offers it.
	TLSOffered
)

// Ports of submission (RFC 8314, RFC 6409), for a URL without one.
const (
	portImplicit = 465
	portStartTLS = 587
)

// Server is a mail server with its login.
type Server struct {
	Host string
	Port int
	TLS  TLS
	// User is empty for a server without a login.
	User     string
	password string
}

// String returns host and port.
func (s Server) String() string { return net.JoinHostPort(s.Host, strconv.Itoa(s.Port)) }

// WithoutLogin returns the server's URL without user and password. ParseServer accepts it.
func (s Server) WithoutLogin() string {
	u := url.URL{Scheme: "smtp", Host: s.String()}
	switch s.TLS {
	case TLSImplicit:
		u.Scheme = "smtps"
	case TLSOffered:
		u.RawQuery = "tls=optional"
	case TLSRequired: // the default of smtp, except on this machine, where it is never required
	}
	return u.String()
}

// ParseServer parses `smtp://USER:PASSWORD@HOST:PORT` or `smtps://…`. smtps encrypts from the first
// byte; its default port is 465. smtp requires STARTTLS; its default port is 587. With
// `?tls=optional`, and for a server on this machine, STARTTLS is used if it is offered. A password
// is sent unencrypted to this machine only. Errors do not repeat the URL: it contains a password.
func ParseServer(text string) (Server, error) {
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "smtp" && u.Scheme != "smtps") || u.Hostname() == "" {
		return Server{}, errors.New(
			"must be smtp://USER:PASSWORD@HOST:PORT or smtps://…, with special characters in " +
				"USER and PASSWORD percent-encoded",
		)
	}
	if strings.Trim(u.Path, "/") != "" || u.Fragment != "" {
		return Server{}, errors.New("must end after HOST:PORT; only ?tls=optional may follow")
	}
	s := Server{Host: u.Hostname(), Port: portStartTLS, TLS: TLSRequired, User: u.User.Username()}
	s.password, _ = u.User.Password()
	if u.Scheme == "smtps" {
		s.Port, s.TLS = portImplicit, TLSImplicit
	} else if isThisMachine(s.Host) {
		s.TLS = TLSOffered
	}
	if port := u.Port(); port != "" {
		if s.Port, err = strconv.Atoi(port); err != nil || s.Port < 1 || s.Port > 65535 {
			return Server{}, errors.New("the port must be 1 to 65535")
		}
	}
	for name, values := range u.Query() {
		if name != "tls" || len(values) != 1 || values[0] != "optional" || u.Scheme != "smtp" {
			return Server{}, errors.New("the only parameter is tls=optional, for smtp")
		}
		s.TLS = TLSOffered
	}
	if (s.User == "") != (s.password == "") {
		return Server{}, errors.New("USER and PASSWORD go together")
	}
	return s, nil
}

func isThisMachine(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// ParseSender parses the sender of mails: an address, or a name and an address in angle brackets.
func ParseSender(text string) (netmail.Address, error) {
	sender, err := netmail.ParseAddress(text)
	if err != nil {
		return netmail.Address{}, fmt.Errorf(
			"%q: must be an address such as hubs@example.org, or \"Hubs <hubs@example.org>\"", text,
		)
	}
	return *sender, nil
}
