package directory_test

import (
	"testing"

	"hubcloud/domain"
	"hubcloud/streams/streamstest"
)

// A mail goes out for an invitation that can still be accepted, and for no other.
func TestInvitationPending(t *testing.T) {
	t.Parallel()
	w := newWorld(t, streamstest.Start(t))
	pending := func(token string) bool {
		t.Helper()
		is, err := w.InvitationPending(t.Context(), token)
		if err != nil {
			t.Error(err)
		}
		return is
	}
	_, replaced := w.invite(t, "ann@example.org", domain.RoleMember)
	if !pending(replaced) {
		t.Error("a new invitation is not pending")
	}
	again, revoked := w.invite(t, "ann@example.org", domain.RoleMember)
	if pending(replaced) || !pending(revoked) {
		t.Error("the newer invitation has not taken the place of the older")
	}
	if err := w.RevokeInvitation(t.Context(), origin, w.orgA, again.ID); err != nil {
		t.Fatal(err)
	}
	_, accepted := w.invite(t, "bob@example.org", domain.RoleMember)
	if _, err := w.AcceptInvitation(t.Context(), origin, accepted); err != nil {
		t.Fatal(err)
	}
	for name, token := range map[string]string{
		"revoked": revoked, "accepted": accepted, "garbage": "x", "none": "",
	} {
		if pending(token) {
			t.Errorf("an invitation that is %s is pending", name)
		}
	}
}
