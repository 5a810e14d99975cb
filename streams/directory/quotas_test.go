package directory_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"hubcloud/domain"
	"hubcloud/streams/directory"
	"hubcloud/streams/installationtest"
	"hubcloud/streams/streamstest"
)

// bounded returns a service with quotas, an organization, and the mails of its invitations.
func bounded(
	t *testing.T, q directory.Quotas,
) (s *directory.Service, org string, mailbox *installationtest.Mailbox) {
	t.Helper()
	mailbox = &installationtest.Mailbox{}
	s = directory.NewService(
		open(t, streamstest.Start(t)),
		directory.ServiceConfig{
			Environment: domain.EnvironmentDev, Mailer: mailbox, Quotas: q,
		},
	)
	org, _, err := s.CreateOrg(t.Context(), anOperator, "A", "owner@example.org")
	streamstest.Must(t, err)
	return s, org, mailbox
}

var (
	anOperator = domain.Origin{Actor: domain.Actor{Kind: domain.ActorOperator}}
	aKey       = domain.Origin{Actor: domain.Actor{Kind: domain.ActorKey, ID: "K1"}}
	aMember    = domain.Origin{
		Actor: domain.Actor{Kind: domain.ActorMember, ID: "01935f2e-0000-7000-8000-000000000001"},
	}
)

// atOnce calls do n times at once and returns the number of successes. Any error must be
// rate_limited with a RetryAfter.
func atOnce(t *testing.T, n int, do func(i int) error) int {
	t.Helper()
	var succeeded atomic.Int32
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			err := do(i)
			var rejected *domain.Error
			switch {
			case err == nil:
				succeeded.Add(1)
			case !errors.As(err, &rejected) || rejected.Code != domain.CodeRateLimited ||
				rejected.RetryAfter <= 0:
				t.Errorf("got %d: %v, want rate_limited with a RetryAfter", i, err)
			}
		})
	}
	all.Wait()
	return int(succeeded.Load())
}

// TestSitesAreBounded: an organization could create any number of sites. All replicas count the
// same sites. A repeated creation with the same id returns the site, and is not over the limit.
func TestSitesAreBounded(t *testing.T) {
	t.Parallel()
	conns := streamstest.Start(t)
	l := open(t, conns)
	cfg := directory.ServiceConfig{
		Environment: domain.EnvironmentDev,
		Quotas:      directory.Quotas{SitesPerOrg: 20},
	}
	one, two := directory.NewService(l, cfg), directory.NewService(l, cfg)
	var orgs [2]string
	for i := range orgs {
		var err error
		orgs[i], _, err = one.CreateOrg(
			t.Context(), anOperator, "A", fmt.Sprintf("owner%d@example.org", i),
		)
		streamstest.Must(t, err)
	}
	create := func(s *directory.Service, org string) error {
		_, err := s.CreateSite(t.Context(), aKey, org, "Site")
		return err
	}
	const id = "01935f2e-0000-7000-8000-0000000000aa"
	first, err := one.CreateSiteWithID(t.Context(), aKey, orgs[0], id, "Site")
	if err != nil || first.ID != id {
		t.Fatalf("got %+v, %v", first, err)
	}
	if made := atOnce(t, 11, func(int) error { return create(one, orgs[0]) }); made != 11 {
		t.Errorf("got %d of 11 sites created, want 11", made)
	}
	if made := atOnce(t, 12, func(int) error { return create(two, orgs[0]) }); made != 8 {
		t.Errorf("another replica created %d sites, want the 8 that were left", made)
	}
	if made := atOnce(t, 5, func(int) error { return create(one, orgs[0]) }); made != 0 {
		t.Errorf("got %d sites created over the limit", made)
	}
	again, err := one.CreateSiteWithID(t.Context(), aKey, orgs[0], id, "Site")
	if err != nil || again != first {
		t.Errorf("create a site again: got %+v, %v, want %+v", again, err, first)
	}
	if err := create(one, orgs[1]); err != nil {
		t.Errorf("a site of another organization: %v", err)
	}
	if _, err := one.CreateSite(t.Context(), anOperator, orgs[0], "Site"); err != nil {
		t.Errorf("a site by an operator: %v", err)
	}
}

// TestKeysAndOrganizationsAreBounded: an organization could create any number of API keys, each
// with a rate limit of its own, and a person any number of organizations.
func TestKeysAndOrganizationsAreBounded(t *testing.T) {
	t.Parallel()
	var keys, orgs atomic.Int32
	s, org, _ := bounded(t, directory.Quotas{
		KeysPerOrg: 10, KeysOf: func(string) int { return int(keys.Load()) },
		OrgsPerAccount: 3, OwnedBy: func(string) int { return int(orgs.Load()) },
	})
	createKey := func(o domain.Origin) error {
		_, _, err := s.CreateKey(t.Context(), o, org, "", domain.AllScopes(), domain.KeyLimits{})
		if err == nil {
			keys.Add(1)
		}
		return err
	}
	// One after the other: a key counts only once it is in force.
	for i := range 12 {
		if err := createKey(aMember); (err == nil) != (i < 10) ||
			err != nil && domain.CodeOf(err) != domain.CodeRateLimited {
			t.Errorf("key %d: %v", i, err)
		}
	}
	if err := createKey(anOperator); err != nil {
		t.Errorf("an operator's key: %v", err)
	}
	for i := range 5 {
		_, _, err := s.CreateOrg(t.Context(), aMember, "B", "owner@example.org")
		if err == nil {
			orgs.Add(1)
		}
		if (err == nil) != (i < 3) || err != nil && domain.CodeOf(err) != domain.CodeRateLimited {
			t.Errorf("organization %d: %v", i, err)
		}
	}
}

// TestMembersAreBounded lets several people accept invitations at once.
func TestMembersAreBounded(t *testing.T) {
	t.Parallel()
	s, org, mailbox := bounded(t, directory.Quotas{MembersPerOrg: 4})
	var tokens []string
	for i := range 6 {
		inv, err := s.Invite(
			t.Context(), aKey, org, fmt.Sprintf("p%d@example.org", i), domain.AccessMember,
		)
		streamstest.Must(t, err)
		tokens = append(tokens, mailbox.Mail(inv.ID).Token)
	}
	if joined := atOnce(t, len(tokens), func(i int) error {
		_, err := s.AcceptInvitation(t.Context(), domain.Origin{}, tokens[i])
		return err
	}); joined != 3 {
		t.Errorf("got %d people joined, want 3", joined)
	}
}

// TestChangesAreBounded: an organization could rename a site any number of times, and each event is
// stored forever. Commands that change nothing, and revocations, are always allowed.
func TestChangesAreBounded(t *testing.T) {
	t.Parallel()
	s, org, _ := bounded(t, directory.Quotas{ChangesPerHour: 20, PreferencesPerDay: 2})
	ctx := context.WithoutCancel(t.Context())
	site, err := s.CreateSite(ctx, aKey, org, "Site")
	streamstest.Must(t, err)
	id, _, err := s.CreateKey(ctx, aMember, org, "", domain.AllScopes(), domain.KeyLimits{})
	streamstest.Must(t, err)
	rename := func(name string) error {
		_, err := s.RenameSite(ctx, aKey, org, site.ID, name)
		return err
	}
	for i := range 9 {
		if err := rename(fmt.Sprint(i)); err != nil {
			t.Fatalf("change %d: %v", i, err)
		}
	}
	if renamed := atOnce(
		t, 5, func(i int) error { return rename(fmt.Sprint("more ", i)) },
	); renamed != 0 {
		t.Errorf("got %d changes over the limit succeeded", renamed)
	}
	if err := rename("8"); err != nil {
		t.Errorf("a change of nothing: %v", err)
	}
	if err := s.RevokeKey(ctx, aMember, id, org); err != nil {
		t.Errorf("a revocation: %v", err)
	}
	// One member's or key's changes must not spend the hour of all others.
	for i := range 9 {
		if _, err := s.RenameSite(ctx, aMember, org, site.ID, fmt.Sprint("other ", i)); err != nil {
			t.Fatalf("another member's change %d: %v", i, err)
		}
	}
	if _, err := s.RenameSite(ctx, aMember, org, site.ID, "last"); domain.CodeOf(err) != domain.CodeRateLimited {
		t.Errorf("a change of the organization over the limit: %v, want rate_limited", err)
	}
}
