package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

// TestMailFlags: a mistake in a flag about mail is one clear line with exit code 2, and never tells
// the password that is in one of them.
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
		var out, errs bytes.Buffer
		code := Run(
			context.Background(), []string{"serve", c.flag, c.value},
			Streams{Out: &out, Err: &errs},
		)
		said := errs.String()
		if code != exitUsage || strings.Count(said, "\n") != 1 || !strings.Contains(said, c.flag) ||
			!strings.Contains(said, c.says) ||
			strings.Contains(said, "secret") {
			t.Errorf("%s %s: exit code %d, said %q", c.flag, c.value, code, said)
		}
	}
}

// TestSender: without --mail-from mails come from the host under which the service is known.
func TestSender(t *testing.T) {
	t.Parallel()
	for publicURL, want := range map[string]string{
		"https://hubs.example.org": `"hubcloud" <no-reply@hubs.example.org>`,
		"http://localhost:8080":    `"hubcloud" <no-reply@localhost>`,
		"http://127.0.0.1:8080":    `"hubcloud" <no-reply@[127.0.0.1]>`,
		"http://[::1]:8080":        `"hubcloud" <no-reply@[IPv6:::1]>`,
	} {
		if from, err := new(serviceFlags).sender(publicURL); err != nil || from.String() != want {
			t.Errorf("%s: %s, %v", publicURL, from.String(), err)
		}
	}
	if from, err := (&serviceFlags{
		MailFrom: "Hubs <hubs@example.org>",
	}).sender("http://x"); err != nil ||
		from.String() != `"Hubs" <hubs@example.org>` {
		t.Errorf("%s, %v", from.String(), err)
	}
}
