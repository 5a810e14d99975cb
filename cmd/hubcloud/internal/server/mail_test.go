package server

import (
	"testing"
)

// TestSender: without --mail-from mails come from the host under which the service is known.
func TestSender(t *testing.T) {
	t.Parallel()
	for publicURL, want := range map[string]string{
		"https://hubs.example.org": `"hubcloud" <no-reply@hubs.example.org>`,
		"http://localhost:8080":    `"hubcloud" <no-reply@localhost>`,
		"http://127.0.0.1:8080":    `"hubcloud" <no-reply@[127.0.0.1]>`,
		"http://[::1]:8080":        `"hubcloud" <no-reply@[IPv6:::1]>`,
	} {
		if from, err := new(Config).sender(publicURL); err != nil || from.String() != want {
			t.Errorf("%s: %s, %v", publicURL, from.String(), err)
		}
	}
	if from, err := (&Config{
		MailFrom: "Hubs <hubs@example.org>",
	}).sender("http://x"); err != nil ||
		from.String() != `"Hubs" <hubs@example.org>` {
		t.Errorf("%s, %v", from.String(), err)
	}
}
