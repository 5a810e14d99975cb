package mail_test

import (
	"crypto/tls"
	"errors"
	"strings"
	"testing"

	"hubcloud/httpapi/mail"
)

// TestGreet goes as far as a delivery does before it sends, and no further; a URL without its login
// does the same, but for the login.
func TestGreet(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		options serverOptions
		url     string
		secured bool
		logins  int
		fails   bool
	}{
		"TLS from the first byte, login": {
			serverOptions{implicit: true, password: "secret"}, "smtps://ann:secret@HOST", true, 1,
			false,
		},
		"STARTTLS, login": {
			serverOptions{startTLS: true, password: "secret"}, "smtp://ann:secret@HOST", true, 1,
			false,
		},
		"in the clear": {serverOptions{}, "smtp://HOST", false, 0, false},
		"a wrong password": {
			serverOptions{startTLS: true, password: "other"}, "smtp://ann:secret@HOST", false, 0,
			true,
		},
		"no TLS where it is needed": {serverOptions{}, "smtps://HOST", false, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startServer(t, c.options)
			server, err := mail.ParseServer(strings.Replace(c.url, "HOST", s.address, 1))
			if err != nil {
				t.Fatal(err)
			}
			secured, err := mail.NewSMTP(server, &tls.Config{RootCAs: s.roots}).Greet(t.Context())
			if (err != nil) != c.fails || secured != c.secured ||
				err != nil &&
					(!errors.Is(err, mail.ErrUnreachable) || strings.Contains(err.Error(), "secret")) {
				t.Errorf("secured %t, %v", secured, err)
			}
			if s.mu.Lock(); s.logins != c.logins || len(s.mails) != 0 {
				t.Errorf("%d logins, %d mails", s.logins, len(s.mails))
			}
			s.mu.Unlock()
			open, err := mail.ParseServer(server.WithoutLogin())
			if err != nil || open.User != "" || open.TLS != server.TLS ||
				open.String() != server.String() ||
				strings.Contains(server.WithoutLogin(), "secret") {
				t.Errorf("without its login it is %s: %+v, %v", server.WithoutLogin(), open, err)
			}
		})
	}
}
