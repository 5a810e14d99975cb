package directory_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/directory"
	"hubcloud/streams/streamstest"
)

// limiter is a directory.RateLimiter that records its calls and rejects one name.
type limiter struct {
	full  string
	names []string
}

func (l *limiter) Allow(
	_ context.Context, name string, _, perHour int, _ time.Time,
) (time.Duration, error) {
	l.names = append(l.names, fmt.Sprint(name, " ", perHour))
	if name == l.full {
		return time.Hour, nil
	}
	return 0, nil
}

// TestInvitationsAreBounded: 353 invitations to one address were accepted in six seconds. The limit
// of an organization holds over all replicas. An invitation over the limit of its address is
// rejected before anything is stored.
func TestInvitationsAreBounded(t *testing.T) {
	t.Parallel()
	conns := streamstest.Start(t)
	w := newWorld(t, conns)
	now := origin.At
	limiter := &limiter{full: "invitations to tired@example.org"}
	replica := func() *directory.Service {
		return directory.NewService(w.log, directory.ServiceConfig{
			Mailer: w.mailbox, RateLimiter: limiter, Now: func() time.Time { return now },
			Quotas: directory.Quotas{
				InvitationsPerHour: 6, PendingInvitations: 9, InvitationsPerAddress: 10,
			},
		})
	}
	replicas := []*directory.Service{replica(), replica()}
	as := domain.Origin{Actor: byKey.Actor}
	invite := func(n int, email string) error {
		_, err := replicas[n%2].Invite(t.Context(), as, w.orgA, email, domain.AccessMember)
		return err
	}
	limited := func(err error, after time.Duration) {
		t.Helper()
		var rejected *domain.Error
		if !errors.As(err, &rejected) || rejected.Code != domain.CodeRateLimited ||
			rejected.RetryAfter != after {
			t.Errorf("got %v, %v, want rate_limited with RetryAfter %v", err, rejected, after)
		}
	}
	if err := invite(0, "owner@example.org"); domain.CodeOf(err) != domain.CodeInvalidRequest ||
		len(limiter.names) != 0 {
		t.Errorf("invite a member: got %v, counted %q, want nothing counted", err, limiter.names)
	}
	limited(invite(0, "tired@example.org"), time.Hour)
	want := []string{
		"invitations of " + w.orgA + " to tired@example.org 5",
		"invitations to tired@example.org 10",
	}
	if !slices.Equal(limiter.names, want) {
		t.Errorf("got counters %q, want %q", limiter.names, want)
	}
	for n := range 6 {
		// Each invitation of the same address counts: each is a mail.
		streamstest.Must(t, invite(n, fmt.Sprintf("guest%d@example.org", n/2)))
	}
	now = now.Add(10 * time.Minute)
	limited(invite(1, "one-more@example.org"), 50*time.Minute)
	if _, err := replicas[0].Invite(
		t.Context(), as, w.orgB, "one-more@example.org", domain.AccessMember,
	); err != nil {
		t.Errorf("an invitation of another organization: %v", err)
	}
	now = now.Add(50 * time.Minute)
	for n := range 6 {
		streamstest.Must(t, invite(n, fmt.Sprintf("later%d@example.org", n)))
	}
	now = now.Add(time.Hour)
	limited(invite(0, "pending@example.org"), time.Minute)
	if err := invite(1, "later3@example.org"); err != nil {
		t.Errorf("an invitation that replaces another: %v", err)
	}
}

// TestMissingAccountIsCreated: a process that ends between the membership and the account leaves a
// member without an account. Opening the link again creates it.
func TestMissingAccountIsCreated(t *testing.T) {
	t.Parallel()
	w := newWorld(t, streamstest.Start(t))
	_, token := w.invite(t, "ann@example.org", domain.RoleMember)
	parsed, err := domain.ParseInvitationToken(token)
	streamstest.Must(t, err)
	events, accepted, err := domain.DecideAcceptInvitation(
		w.org(t, w.orgA), origin, parsed, "01935f2e-0000-7000-8000-0000000000ab",
	)
	streamstest.Must(t, err)
	subject := streams.OrgSubject(w.orgA)
	last, err := w.log.Load(
		t.Context(), subject, 0, func(uint64, domain.Event) error { return nil },
	)
	streamstest.Must(t, err)
	if _, err := w.log.Append(t.Context(), subject, last, events...); err != nil {
		t.Fatal(err)
	}
	again, err := w.AcceptInvitation(t.Context(), origin, token)
	if err != nil || !again.Already || again.MemberID != accepted.MemberID {
		t.Errorf("got %+v, %v", again, err)
	}
	if n, by := w.accounts(t, "ann@example.org"); n != 1 || by.ID != accepted.MemberID {
		t.Errorf("got %d accounts, made by %+v", n, by)
	}
}
