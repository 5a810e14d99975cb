package mail_test

import (
	"crypto/tls"
	"errors"
	"strings"
	"testing"

	"hubcloud/httpapi/mail"
	"hubcloud/test/mailserver"
)

// TestGreet checks that Greet connects and logs in like a delivery and sends no mail, and that
// WithoutLogin removes only the login.
func TestGreet(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		options mailserver.Options
		url     string
		secured bool
		logins  int
		fails   bool
	}{
		"TLS from the first byte, login": {
			mailserver.Options{ImplicitTLS: true, Password: "secret"},
			"smtps://ann:secret@HOST", true, 1, false,
		},
		"STARTTLS, login": {
			mailserver.Options{StartTLS: true, Password: "secret"},
			"smtp://ann:secret@HOST", true, 1, false,
		},
		"plaintext": {mailserver.Options{}, "smtp://HOST", false, 0, false},
		"wrong password": {
			mailserver.Options{StartTLS: true, Password: "other"},
			"smtp://ann:secret@HOST", false, 0, true,
		},
		"TLS required and not offered": {mailserver.Options{}, "smtps://HOST", false, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := mailserver.Start(t, c.options)
			server := parse(t, c.url, s.Address)
			secured, err := mail.NewSMTP(server, &tls.Config{RootCAs: s.Roots}).Greet(t.Context())
			if secured != c.secured || (err != nil) != c.fails {
				t.Errorf(
					"got secured %t, error %v; want secured %t, an error: %t", secured, err,
					c.secured, c.fails,
				)
			}
			if err != nil &&
				(!errors.Is(err, mail.ErrUnreachable) || strings.Contains(err.Error(), "secret")) {
				t.Errorf("got %v, want ErrUnreachable without the password", err)
			}
			if logins, mails := s.Logins(), len(s.Mails()); logins != c.logins || mails != 0 {
				t.Errorf("got %d logins and %d mails, want %d and none", logins, mails, c.logins)
			}
			without, err := mail.ParseServer(server.WithoutLogin())
			if err != nil || without.User != "" || without.TLS != server.TLS ||
				without.String() != server.String() ||
				strings.Contains(server.WithoutLogin(), "secret") {
				t.Errorf(
					"%s without its login: got %s, %+v, %v", server, server.WithoutLogin(),
					without, err,
				)
			}
		})
	}
}
