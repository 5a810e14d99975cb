package portal

import (
	"encoding/base64"
	"encoding/json"
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
	return c.make(name, "", -time.Second)
}

// maxCookie is the longest value of a cookie that browsers keep.
const maxCookie = 3600

// keep stores a value in the browser, as JSON. It reports false for a value that is too long.
func (req *request) keep(name string, value any, lifetime time.Duration) bool {
	encoded, err := json.Marshal(value)
	text := base64.RawURLEncoding.EncodeToString(encoded)
	if err != nil || len(text) > maxCookie {
		return false
	}
	http.SetCookie(req.w, req.cookies.make(name, text, lifetime))
	return true
}

// pop returns the value of a cookie, "" if there is none, and removes the cookie.
func (req *request) pop(name string) string {
	cookie, err := req.http.Cookie(name)
	if err != nil {
		return ""
	}
	http.SetCookie(req.w, req.cookies.expire(name))
	return cookie.Value
}

// decodeKept decodes what keep has stored. It reports false, and the zero value, for anything else.
func decodeKept[T any](text string) (value T, ok bool) {
	encoded, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || json.Unmarshal(encoded, &value) != nil {
		return *new(T), false
	}
	return value, true
}
