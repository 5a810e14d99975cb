package faults

import (
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
	"hubcloud/test/mailserver"
)

// awaitMail waits for the one mail to an address and returns its subject and text.
func awaitMail(t *testing.T, s *mailserver.Server, address string) (subject, text string) {
	t.Helper()
	streamstest.Eventually(
		t, "a mail to "+address+" arrived", func() bool { return len(s.MailsTo(address)) > 0 },
	)
	mails := s.MailsTo(address)
	if len(mails) != 1 {
		t.Errorf("%s: got %d mails, want 1", address, len(mails))
	}
	return mails[0].Read(t)
}

// invite invites a person and returns the invitation's id.
func invite(t *testing.T, tenant *harness.Tenant, email string) (id string) {
	t.Helper()
	var invitation struct{ ID string }
	tenant.Must(http.MethodPost, "/invitations", map[string]string{
		"email": email,
	}, http.StatusCreated).
		JSON(t, &invitation)
	return invitation.ID
}

var portalLink = regexp.MustCompile(`http://\S+/portal/invitations/\S+`)

// TestInvitationsOutliveCrashes checks that the mail of an accepted invitation arrives once,
// although the mail server is down and the service is killed meanwhile, and that its link works.
func TestInvitationsOutliveCrashes(t *testing.T) {
	t.Parallel()
	address := streamstest.FreeAddress(t)
	s := harness.Start(t, "--smtp-url", "smtp://"+address, "--mail-from", "Hubs <hubs@example.org>")
	tenant := harness.NewTenant(t, s, "Häuser 日本")
	invite(t, tenant, "ann@example.org")
	streamstest.Eventually(t, "a log line about the server",
		func() bool { return strings.Contains(s.Log(), "mail server unreachable") },
	)
	s.Kill()
	s.Begin()
	invite(t, tenant, "bob@example.org")
	// While the server is down, one invitation is replaced and one revoked: their mails must not be
	// sent.
	invite(t, tenant, "dee@example.org")
	tenant.Must(
		http.MethodDelete, "/invitations/"+invite(t, tenant, "eve@example.org"), nil,
		http.StatusNoContent,
	)
	invite(t, tenant, "dee@example.org")
	s.Kill()
	server := mailserver.Start(t, mailserver.Options{Address: address})
	s.Begin()
	for _, address := range []string{"ann@example.org", "bob@example.org"} {
		subject, text := awaitMail(t, server, address)
		if subject != "Invitation to Häuser 日本" || !strings.Contains(text, "Häuser 日本") {
			t.Errorf("mail to %s: got subject %q, text %s", address, subject, text)
		}
		link := portalLink.FindString(text)
		if answer := harness.Open(t, http.MethodGet, link); answer.Status != http.StatusOK {
			t.Errorf("%s opens %s: got %d %s, want 200", address, link, answer.Status, answer.Body)
		}
		if strings.Contains(s.Log(), link[strings.LastIndexByte(link, '/')+1:]) {
			t.Error("the log contains the link's secret")
		}
	}
	var members struct{ Data []struct{ Email string } }
	tenant.Must(http.MethodGet, "/members", nil, http.StatusOK).JSON(t, &members)
	if len(members.Data) != 3 {
		t.Errorf("got members %v, want 3", members.Data)
	}

	// A restart must not send anything again.
	s.Stop()
	s.Begin()
	invite(t, tenant, "cem@example.org")
	awaitMail(t, server, "cem@example.org")
	streamstest.Eventually(
		t, "the queue is empty", func() bool { return waitingMails(t, s) == "0" },
	)
	awaitMail(t, server, "ann@example.org")
	awaitMail(t, server, "bob@example.org")
	_, newest := awaitMail(t, server, "dee@example.org")
	if answer := harness.Open(
		t, http.MethodGet, portalLink.FindString(newest),
	); answer.Status != http.StatusOK {
		t.Errorf("link of the mail: got %d, want that of the newest invitation", answer.Status)
	}
	if mails := server.MailsTo("eve@example.org"); len(mails) != 0 {
		t.Errorf("revoked invitation: got mails %v, want none", mails)
	}
}

// waitingMails returns the number of mails in the outbox.
func waitingMails(t *testing.T, s *harness.Service) string {
	t.Helper()
	found := regexp.MustCompile(`(?m)^hubcloud_outbox_waiting (\S+)$`).
		FindSubmatch(harness.Open(t, http.MethodGet, "http://"+s.Admin+"/metrics").Body)
	if found == nil {
		t.Fatal("metric hubcloud_outbox_waiting: not found")
	}
	return string(found[1])
}

// TestMailServersAnswers checks that a permanent rejection of a recipient is logged and not
// retried, a temporary one is retried, and neither delays other mails.
func TestMailServersAnswers(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	tries := map[string]int{}
	server := mailserver.Start(t, mailserver.Options{
		Answer: func(step mailserver.Step, to string) error {
			if step != mailserver.StepRcpt {
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			tries[to]++
			switch {
			case to == "nobody@example.org":
				return mailserver.Reject(550, [3]int{5, 1, 1}, "no such user")
			case to == "grey@example.org" && tries[to] < 3:
				return mailserver.Reject(451, [3]int{4, 7, 1}, "greylisted, come back later")
			}
			return nil
		},
	})
	s := harness.Start(t, "--smtp-url", "smtp://"+server.Address)
	tenant := harness.NewTenant(t, s, "Answers")
	for _, address := range []string{"grey@example.org", "nobody@example.org", "ann@example.org"} {
		invite(t, tenant, address)
	}
	awaitMail(t, server, "ann@example.org")
	awaitMail(t, server, "grey@example.org")
	streamstest.Eventually(t, "an error line", func() bool {
		return regexp.MustCompile(
			`level=ERROR msg="mail dropped: rejected" mail_id=\S+ tries=1 .*no such user`,
		).
			MatchString(s.Log())
	})
	mu.Lock()
	defer mu.Unlock()
	if tries["nobody@example.org"] != 1 || tries["grey@example.org"] != 3 ||
		tries["ann@example.org"] != 1 {
		t.Errorf("got tries %v, want 1 for nobody and ann, 3 for grey", tries)
	}
}
