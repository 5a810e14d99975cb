package portal

import (
	"net"
	"net/http"
	"net/url"
	"time"
)

// cookies names and makes the portal's cookies. Scripts cannot read them, other sites cannot have
// them sent with what changes something, and they travel over TLS alone, but for a service on the
// browser's own machine.
type cookies struct{ secure bool }

// cookiesFor gives the cookies of a service that is reached there.
func cookiesFor(public *url.URL) cookies {
	host := public.Hostname()
	ip := net.ParseIP(host)
	loopback := host == "localhost" || ip != nil && ip.IsLoopback()
	return cookies{secure: public.Scheme == "https" || !loopback}
}

func (c cookies) session() string { return c.prefix() + "hubcloud_session" }
func (c cookies) notice() string  { return c.prefix() + "hubcloud_notice" }

// prefix keeps hosts beside ours from setting our cookies (RFC 6265bis, section 4.1.3.2).
func (c cookies) prefix() string {
	if c.secure {
		return "__Host-"
	}
	return ""
}

func (c cookies) make(name, value string, life time.Duration) *http.Cookie {
	return &http.Cookie{
		Name: name, Value: value, Path: "/", MaxAge: int(life / time.Second), HttpOnly: true,
		Secure: c.secure, SameSite: http.SameSiteLaxMode,
	}
}

// end makes the browser forget a cookie.
func (c cookies) end(name string) *http.Cookie {
	return &http.Cookie{
		Name:     name,
		Path:     "/",
		MaxAge:   -1,
		HttpOnly: true,
		Secure:   c.secure,
		SameSite: http.SameSiteLaxMode,
	}
}
