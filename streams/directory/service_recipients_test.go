package directory_test

import (
	"testing"

	"hubcloud/domain"
	"hubcloud/streams/streamstest"
)

// TestInvitationRecipient checks that only pending invitations have a recipient, and that mails go
// to the address of the account: the invited address may be another spelling of it.
func TestInvitationRecipient(t *testing.T) {
	t.Parallel()
	w := newWorld(t, streamstest.Start(t))
	const invited = "ann@EXAMPLE.org"
	want := func(name, token, recipient string) {
		t.Helper()
		got, err := w.InvitationRecipient(t.Context(), token, invited)
		if err != nil || got != recipient {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, recipient)
		}
	}
	_, replaced := w.invite(t, invited, domain.RoleMember)
	want("pending", replaced, invited)
	if _, err := w.EnsureAccount(t.Context(), origin, "ann@example.org"); err != nil {
		t.Fatal(err)
	}
	want("pending, with an account", replaced, "ann@example.org")
	again, revoked := w.invite(t, invited, domain.RoleMember)
	want("replaced", replaced, "")
	want("replacing", revoked, "ann@example.org")
	if err := w.RevokeInvitation(t.Context(), origin, w.orgA, again.ID); err != nil {
		t.Fatal(err)
	}
	_, accepted := w.invite(t, "bob@example.org", domain.RoleMember)
	if _, err := w.AcceptInvitation(t.Context(), origin, accepted); err != nil {
		t.Fatal(err)
	}
	for name, token := range map[string]string{
		"revoked": revoked, "accepted": accepted, "no token": "x", "empty": "",
	} {
		want(name, token, "")
	}
}
