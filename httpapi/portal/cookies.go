package portal

import (
	"net"
	"net/http"
	"net/url"
	"time"
)

// cookies creates the portal's cookies. Scripts cannot read them, and browsers do not send them
// with POSTs from other sites. They are sent over TLS only, unless the service runs on the
// browser's own machine.
type cookies struct{ secure bool }

// cookiesFor returns the cookies of a service with this public URL.
func cookiesFor(public *url.URL) cookies {
	host := public.Hostname()
	ip := net.ParseIP(host)
	loopback := host == "localhost" || ip != nil && ip.IsLoopback()
	return cookies{secure: public.Scheme == "https" || !loopback}
}

func (c cookies) session() string { return c.prefix() + "hubcloud_session" }
func (c cookies) notice() string  { return c.prefix() + "hubcloud_notice" }
func (c cookies) undo() string    { return c.prefix() + "hubcloud_undo" }
func (c cookies) draft() string   { return c.prefix() + "hubcloud_draft" }
func (c cookies) attempt() string { return c.prefix() + "hubcloud_attempt" }

// prefix keeps sibling hosts from setting the cookies (RFC 6265bis, section 4.1.3.2).
func (c cookies) prefix() string {
	if c.secure {
		return "__Host-"
	}
	return ""
}

// make returns a cookie that expires after its lifetime.
func (c cookies) make(name, value string, lifetime time.Duration) *http.Cookie {
	return &http.Cookie{
		Name: name, Value: value, Path: "/", MaxAge: int(lifetime / time.Second), HttpOnly: true,
		Secure: c.secure, SameSite: http.SameSiteLaxMode,
	}
}

// expire returns a cookie that removes the cookie with that name from the browser.
func (c cookies) expire(name string) *http.Cookie {
	return &http.Cookie{
		Name:     name,
		Path:     "/",
		MaxAge:   -1,
		HttpOnly: true,
		Secure:   c.secure,
		SameSite: http.SameSiteLaxMode,
	}
}
