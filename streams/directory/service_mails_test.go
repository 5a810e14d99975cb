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
	if err := w.StopMails(t.Context(), origin, w.orgA, ann); err != nil {
		t.Fatal(err)
	}
	want("unsubscribed", w.orgA, "")
	alarms := domain.MailPreferences{Topics: domain.AlarmTopics}
	if err := w.SetMailPreferences(t.Context(), own, w.orgA, ann, alarms); err != nil {
		t.Fatal(err)
	}
	want("subscribed again", w.orgA, "ann@example.org")
	wantCode(t, w.StopMails(t.Context(), origin, w.orgB, ann), domain.CodeNotFound)
	if err := w.RemoveMember(t.Context(), own, w.orgA, ann); err != nil {
		t.Fatal(err)
	}
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
	if err := w.SetMailPreferences(t.Context(), own, w.orgA, owner, chosen); err != nil {
		t.Fatal(err)
	}
	if err := w.StopMails(t.Context(), origin, w.orgA, owner); err != nil {
		t.Fatal(err)
	}
	if got := w.org(t, w.orgA).Members[0].MailPreferences(); !got.None() || len(got.Sites) != 1 {
		t.Errorf("got %+v, want no mails, and the site", got)
	}
}
