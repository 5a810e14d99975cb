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
	for _, c := range []struct{ configured, bound, want string }{
		{"https://hubs.example.org/", ":8080", "https://hubs.example.org"},
		{"", "[::]:8080", "http://localhost:8080"},
		{"", "127.0.0.1:8080", "http://127.0.0.1:8080"},
	} {
		if got := publicURL(c.configured, c.bound); got != c.want {
			t.Errorf("publicURL(%q, %q) is %q, want %q", c.configured, c.bound, got, c.want)
		}
	}
}
