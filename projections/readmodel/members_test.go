package readmodel_test

import (
	"reflect"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/projections/projectionstest"
	"hubcloud/streams"
	"hubcloud/streams/streamstest"
)

// everyPage returns the ids of a list that is read in pages.
func everyPage[T any](
	t *testing.T, limit int, page func(limit int, after string) (domain.Page[T], error),
	id func(T) string,
) (ids []string) {
	t.Helper()
	for after := ""; ; after = ids[len(ids)-1] {
		got, err := page(limit, after)
		streamstest.Must(t, err)
		if got.Data == nil || len(got.Data) > limit || got.HasMore && len(got.Data) < limit {
			t.Fatalf("page of %d: got %+v, want a full page", limit, got)
		}
		for _, item := range got.Data {
			ids = append(ids, id(item))
		}
		if !got.HasMore {
			return ids
		}
	}
}

func TestMembersAreListedOwnersFirst(t *testing.T) {
	t.Parallel()
	w, s := projectionstest.NewProjected(t)
	// All in the same microsecond, with unordered ids.
	at := time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC)
	subject := streams.OrgSubject(org)
	w.AppendAt(
		t, at, subject, domain.OrgCreated{OrgID: org, Name: "Org"},
		projectionstest.MemberAdded(org, 9, domain.RoleOwner),
		projectionstest.MemberAdded(org, 5, domain.RoleMember),
	)
	w.AppendAt(
		t, at, subject, projectionstest.MemberAdded(org, 7, domain.RoleAdmin),
		projectionstest.MemberAdded(org, 1, domain.RoleOwner),
		projectionstest.MemberAdded(org, 3, domain.RoleMember),
	)
	w.Do(t, s, streams.OrgSubject(other), projectionstest.MemberAdded(other, 8, domain.RoleOwner))

	members := func(limit int, after string) (domain.Page[domain.Member], error) {
		return s.Members(t.Context(), org, limit, after)
	}
	id := func(m domain.Member) string { return m.ID }
	listed := func(want ...int) {
		t.Helper()
		ids := make([]string, 0, len(want))
		for _, n := range want {
			ids = append(ids, memberID(n))
		}
		for limit := 1; limit <= len(want)+1; limit++ {
			if got := everyPage(t, limit, members, id); !reflect.DeepEqual(got, ids) {
				t.Errorf("pages of %d: got %v, want %v", limit, got, ids)
			}
		}
	}
	listed(9, 1, 5, 7, 3)
	want := domain.Member{
		ID:       memberID(7),
		Email:    "P7@example.org",
		Role:     domain.RoleAdmin,
		JoinedAt: at,
	}
	if got, err := s.Member(t.Context(), org, memberID(7)); err != nil ||
		got != want {
		t.Errorf("Member: got %+v, %v, want %+v", got, err, want)
	}

	// A new owner is listed among the owners by the order of joining.
	w.Do(t, s, subject, projectionstest.RoleChanged(org, 5, domain.RoleOwner))
	listed(9, 5, 1, 7, 3)
	w.Do(
		t, s, subject, projectionstest.RoleChanged(org, 9, domain.RoleMember),
		projectionstest.RoleChanged(org, 9, domain.RoleAdmin),
		projectionstest.MemberRemoved(org, 3),
	)
	listed(5, 1, 9, 7)
	if got, err := s.Member(t.Context(), org, memberID(9)); err != nil ||
		got.Role != domain.RoleAdmin ||
		!got.JoinedAt.Equal(at) {
		t.Errorf("Members: got %+v, %v", got, err)
	}
	for _, unknown := range []string{
		memberID(3), memberID(8), "x", "\x00", "\xff",
		memberID(5) + "\x00",
	} {
		if _, err := s.Members(t.Context(), org, 5, unknown); !isCode(
			err, domain.CodeInvalidRequest,
		) {
			t.Errorf("starting_after %q: got %v, want invalid_request", unknown, err)
		}
		if _, err := s.Member(t.Context(), org, unknown); !isCode(err, domain.CodeNotFound) {
			t.Errorf("Member(%q): got %v, want not_found", unknown, err)
		}
	}
	// Added, changed and removed in one batch.
	w.Do(
		t, s, subject, projectionstest.MemberAdded(org, 4, domain.RoleMember),
		projectionstest.RoleChanged(org, 4, domain.RoleAdmin),
		projectionstest.MemberAdded(org, 2, domain.RoleMember),
		projectionstest.RoleChanged(org, 2, domain.RoleOwner),
		projectionstest.MemberRemoved(org, 4),
	)
	listed(5, 1, 2, 9, 7)
	if page, err := s.Members(t.Context(), siteID(1), 50, ""); err != nil ||
		page.Data == nil ||
		len(page.Data) != 0 ||
		page.HasMore {
		t.Errorf("members of an unknown organization: got %v, %v, want none", page, err)
	}
}

func TestPendingInvitationsAreListedNewestFirst(t *testing.T) {
	t.Parallel()
	w, s := projectionstest.NewProjected(t)
	now := time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC)
	soon, late := now.Add(time.Hour), now.Add(48*time.Hour)
	subject := streams.OrgSubject(org)
	var facts []domain.Fact
	for _, n := range []int{4, 1, 8, 2, 9, 6} {
		expires := late
		if n == 8 {
			expires = soon
		}
		facts = append(facts, projectionstest.MemberInvited(org, n, expires, ""))
	}
	w.AppendAt(t, now, subject, facts...)
	w.Do(t, s, streams.OrgSubject(other), projectionstest.MemberInvited(other, 7, late, ""))
	listed := func(at time.Time, want ...int) {
		t.Helper()
		ids := make([]string, 0, len(want))
		for _, n := range want {
			ids = append(ids, invitationID(n))
		}
		for limit := 1; limit <= len(want)+1; limit++ {
			got := everyPage(
				t,
				limit,
				func(limit int, after string) (domain.Page[domain.Invitation], error) {
					return s.Invitations(t.Context(), org, limit, after, at)
				},
				func(i domain.Invitation) string { return i.ID },
			)
			if !reflect.DeepEqual(got, ids) {
				t.Errorf("pages of %d: got %v, want %v", limit, got, ids)
			}
		}
	}
	listed(now, 6, 9, 2, 8, 1, 4)
	page, err := s.Invitations(t.Context(), org, 1, invitationID(2), now)
	want := domain.Invitation{
		ID: invitationID(
			8,
		), Email: "I8@example.org", Role: domain.RoleMember, Status: domain.InvitationPending,
		CreatedAt: now, ExpiresAt: soon,
	}
	if err != nil || !page.HasMore || page.Data[0] != want {
		t.Errorf("Invitations: got %+v, %v, want %+v", page, err, want)
	}
	listed(soon.Add(-time.Microsecond), 6, 9, 2, 8, 1, 4)
	listed(soon, 6, 9, 2, 1, 4)

	w.Do(
		t, s, subject,
		domain.MemberInvitationRevoked{OrgID: org, InvitationID: invitationID(9)},
		projectionstest.MemberAdded(org, 1, domain.RoleMember),
		domain.MemberInvitationAccepted{
			OrgID: org, InvitationID: invitationID(1),
			MemberID: memberID(1),
		},
		projectionstest.MemberInvited(org, 3, late, invitationID(4)),
		// created and replaced in one batch
		projectionstest.MemberInvited(org, 5, late, invitationID(3)),
	)
	listed(now, 5, 6, 2, 8)
	// An invitation that is no longer pending is a valid start.
	for n, want := range map[int]string{
		9: invitationID(2), 3: invitationID(6),
	} {
		if page, err := s.Invitations(
			t.Context(), org, 1, invitationID(n), now,
		); err != nil ||
			len(page.Data) != 1 ||
			page.Data[0].ID != want {
			t.Errorf("after invitation %d: got %+v, %v", n, page, err)
		}
	}
	if _, err := s.Invitations(
		t.Context(), org, 5, invitationID(7), now,
	); !isCode(err, domain.CodeInvalidRequest) {
		t.Errorf("starting_after of another organization: got %v, want invalid_request", err)
	}
	if page, err := s.Invitations(t.Context(), org, 5, "", late); err != nil || page.Data == nil ||
		len(page.Data) != 0 ||
		page.HasMore {
		t.Errorf("expired invitations: got %v, %v, want none", page, err)
	}
}
