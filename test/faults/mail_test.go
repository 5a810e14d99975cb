package faults

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"hubcloud/domain"
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

	// Who operates the service made the organization: its owner was mailed a link that signs in.
	owner, err := domain.WireAddress(tenant.Owner)
	harness.Must(t, err)
	subject, text := awaitMail(t, server, owner)
	link := regexp.MustCompile(`https?://\S+/portal/sign-in/\S+`).FindString(text)
	if subject != "You own Häuser 日本" ||
		!strings.Contains(string(harness.Open(t, http.MethodGet, link).Body), tenant.Owner) {
		t.Errorf("mail to the owner: got subject %q, text %s", subject, text)
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
