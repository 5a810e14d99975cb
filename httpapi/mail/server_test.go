package mail_test

import (
	"strings"
	"testing"

	"hubcloud/httpapi/mail"
)

func TestParseServer(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		address string
		tls     mail.TLS
		user    string
	}{
		"smtps://mail.example.org": {
			"mail.example.org:465", mail.TLSImplicit, "",
		},
		"smtps://ann:secret@mail.example.org:4650": {
			"mail.example.org:4650", mail.TLSImplicit, "ann",
		},
		"smtp://mail.example.org": {
			"mail.example.org:587", mail.TLSRequired, "",
		},
		"smtp://ann%40example.org:p%2Fw@mail.example.org:25/": {
			"mail.example.org:25", mail.TLSRequired, "ann@example.org",
		},
		"smtp://mailpit:1025?tls=optional": {
			"mailpit:1025", mail.TLSOffered, "",
		},
		"smtp://localhost:1025": {
			"localhost:1025", mail.TLSOffered, "",
		},
		"smtp://127.0.0.1:1025": {
			"127.0.0.1:1025", mail.TLSOffered, "",
		},
		"smtp://[::1]:1025": {"[::1]:1025", mail.TLSOffered, ""},
		"smtp://10.0.0.1": {
			"10.0.0.1:587", mail.TLSRequired, "",
		},
	} {
		got, err := mail.ParseServer(text)
		if err != nil || got.String() != want.address || got.TLS != want.tls ||
			got.User != want.user {
			t.Errorf(
				"ParseServer(%s): got %s %d %q, %v, want %+v", text, got, got.TLS, got.User, err,
				want,
			)
		}
	}
}

// TestParseServerRejects checks that errors do not contain the password of the URL.
func TestParseServerRejects(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "mail.example.org:25", "http://mail.example.org", "smtp://", "smtp://:25",
		"smtp://ann:secret@", "smtp://ann:secret@mail.example.org:99999",
		"smtp://ann:secret@mail.example.org:0", "smtp://ann:secret%zz@mail.example.org",
		"smtp://ann:secret@mail.example.org/inbox",
		"smtp://ann:secret@mail.example.org?tls=none",
		"smtps://ann:secret@mail.example.org?tls=optional", "smtp://ann@mail.example.org",
		"smtp://:secret@mail.example.org", "smtp://ann:secret@mail.example.org#x",
		"smtp://ann:sec ret\n@mail.example.org",
	} {
		server, err := mail.ParseServer(text)
		if err == nil {
			t.Errorf("ParseServer(%q): got %s, want an error", text, server)
			continue
		}
		if strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "sec ret") ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("ParseServer(%q): got error %v, want one line without the password", text, err)
		}
	}
}

func TestParseSender(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"hubs@example.org":          "<hubs@example.org>",
		"Hubs <hubs@example.org>":   `"Hubs" <hubs@example.org>`,
		"  Hübe <hubs@example.org>": "=?utf-8?q?H=C3=BCbe?= <hubs@example.org>",
	} {
		if got, err := mail.ParseSender(text); err != nil || got.String() != want {
			t.Errorf("ParseSender(%q): got %s, %v, want %s", text, got.String(), err, want)
		}
	}
	for _, text := range []string{
		"", "hubs", "a@example.org, b@example.org", "hubs@example.org\r\nBcc: x@example.org",
	} {
		if got, err := mail.ParseSender(text); err == nil {
			t.Errorf("ParseSender(%q): got %s, want an error", text, got.String())
		}
	}
}
