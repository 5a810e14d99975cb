package server

import (
	"testing"
)

func TestBrokerAddresses(t *testing.T) {
	t.Parallel()
	for urls, want := range map[string]string{
		"nats://a:4222":                 "a:4222",
		"tls://a:4222,tls://b:4222":     "a:4222,b:4222",
		"a:4222, nats://[::1]:4222":     "a:4222,[::1]:4222",
		"nats://user:secret@a:4222,b:1": "a:4222,b:1",
	} {
		if got := brokerAddresses(urls); got != want {
			t.Errorf("brokerAddresses(%q) is %q, want %q", urls, got, want)
		}
	}
}

func TestPublicURL(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cfg         Config
		bound, want string
	}{
		{Config{PublicURL: "https://hubs.example.org/"}, ":8080", "https://hubs.example.org"},
		{Config{}, ":8080", "http://localhost:8080"},
		{Config{}, "127.0.0.1:8080", "http://127.0.0.1:8080"},
		{Config{TLSCert: "c.pem"}, "[::]:443", "https://localhost"},
		{Config{TLSCert: "c.pem"}, "127.0.0.1:8443", "https://127.0.0.1:8443"},
		{Config{ACMEDomains: []string{"a.example", "b.example"}}, "[::]:443", "https://a.example"},
		{Config{ACMEDomains: []string{"a.example"}}, ":8443", "https://a.example:8443"},
	} {
		if got := c.cfg.publicURL(c.bound); got != c.want {
			t.Errorf("publicURL(%q): got %q, want %q", c.bound, got, c.want)
		}
	}
}
