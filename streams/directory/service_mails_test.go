package directory_test

import (
	"testing"

	"hubcloud/domain"
	"hubcloud/streams/streamstest"
)

// TestMailRecipient: a mail that waits reaches nobody who was removed or has unsubscribed since.
func TestMailRecipient(t *testing.T) {
	t.Parallel()
	w := newWorld(t, streamstest.Start(t))
	ann := w.join(t, "ann@example.org", domain.RoleAdmin)
	own := domain.Origin{
		At: origin.At, Actor: domain.Actor{Kind: domain.ActorMember, ID: ann},
	}
	want := func(when, org, recipient string) {
		t.Helper()
		got, err := w.MailRecipient(t.Context(), org, ann)
		if err != nil || got != recipient {
			t.Errorf("%s: got %q, %v, want %q", when, got, err, recipient)
		}
	}
	want("an admin", w.orgA, "ann@example.org")
	want("a member of another organization", w.orgB, "")
	want("no organization", "*", "")
	streamstest.Must(t, w.StopMails(t.Context(), origin, w.orgA, ann))
	want("unsubscribed", w.orgA, "")
	alarms := domain.MailPreferences{Topics: domain.AlarmTopics}
	streamstest.Must(t, w.SetMailPreferences(t.Context(), own, w.orgA, ann, alarms))
	want("subscribed again", w.orgA, "ann@example.org")
	wantCode(t, w.StopMails(t.Context(), origin, w.orgB, ann), domain.CodeNotFound)
	streamstest.Must(t, w.RemoveMember(t.Context(), own, w.orgA, ann))
	want("removed", w.orgA, "")
	wantCode(t, w.StopMails(t.Context(), origin, w.orgA, ann), domain.CodeNotFound)
}

// TestMailPreferencesOfOwnSites: members choose sites of their organization, and unsubscribing
// keeps the choice.
func TestMailPreferencesOfOwnSites(t *testing.T) {
	t.Parallel()
	w := newWorld(t, streamstest.Start(t))
	owner := w.org(t, w.orgA).Members[0].ID
	own := domain.Origin{
		At: origin.At, Actor: domain.Actor{Kind: domain.ActorMember, ID: owner},
	}
	chosen := domain.MailPreferences{
		Topics: domain.WarningTopics, Sites: []string{w.sitesB[0]},
	}
	wantCode(
		t, w.SetMailPreferences(t.Context(), own, w.orgA, owner, chosen),
		domain.CodeInvalidRequest,
	)
	chosen.Sites = []string{w.sitesA[0]}
	streamstest.Must(t, w.SetMailPreferences(t.Context(), own, w.orgA, owner, chosen))
	streamstest.Must(t, w.StopMails(t.Context(), origin, w.orgA, owner))
	if got := w.org(t, w.orgA).Members[0].MailPreferences(); !got.None() || len(got.Sites) != 1 {
		t.Errorf("got %+v, want no mails, and the site", got)
	}
}

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
	streamstest.Must(t, w.RevokeInvitation(t.Context(), origin, w.orgA, again.ID))
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
