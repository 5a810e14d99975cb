package server

import "testing"

func TestSender(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ mailFrom, publicURL, want string }{
		{"", "https://hubs.example.org", `"hubcloud" <no-reply@hubs.example.org>`},
		{"", "http://localhost:8080", `"hubcloud" <no-reply@localhost>`},
		{"", "http://127.0.0.1:8080", `"hubcloud" <no-reply@[127.0.0.1]>`},
		{"", "http://[::1]:8080", `"hubcloud" <no-reply@[IPv6:::1]>`},
		{"Hubs <hubs@example.org>", "http://x", `"Hubs" <hubs@example.org>`},
	} {
		from, err := Config{MailFrom: c.mailFrom}.sender(c.publicURL)
		if err != nil || from.String() != c.want {
			t.Errorf(
				"--mail-from %q at %s: got %s, %v; want %s", c.mailFrom, c.publicURL, &from, err,
				c.want,
			)
		}
	}
}
