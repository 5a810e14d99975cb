package cli

import (
	"strings"
	"testing"
)

// A usage error in a flag about mail never contains the password of --smtp-url.
func TestMailFlags(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ flag, value, says string }{
		{"--smtp-url", "mail.example.org:25", "smtp://USER:PASSWORD@HOST:PORT"},
		{"--smtp-url", "http://ann:secret@mail.example.org", "smtp://USER:PASSWORD@HOST:PORT"},
		{"--smtp-url", "smtp://ann:secret@mail.example.org:0", "port"},
		{"--smtp-url", "smtp://ann:secret%zz@mail.example.org", "percent-encoded"},
		{"--smtp-url", "smtps://ann:secret@mail.example.org?tls=optional", "tls=optional"},
		{"--mail-from", "hubs", "hubs@example.org"},
	} {
		_, said, code := run(t, "serve", c.flag, c.value)
		if code != exitUsage || strings.Count(said, "\n") != 1 || !strings.Contains(said, c.flag) ||
			!strings.Contains(said, c.says) ||
			strings.Contains(said, "secret") {
			t.Errorf("%s %s: exit code %d, printed %q", c.flag, c.value, code, said)
		}
	}
}
