package directory

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/shares"
)

// Quotas limit what one organization, or one person, can store in the directory forever. 0 is no
// limit. Operators may exceed SitesPerOrg, KeysPerOrg, OrgsPerAccount and ChangesPerHour.
//
// A new quota needs a flag (cmd/hubcloud/internal/server: config.go, validate.go, readmodels.go)
// and a row in deploy/docs/limits.md.
//
// SitesPerOrg, KeysPerOrg and OrgsPerAccount are checked before each creation, and a process
// creates for one organization or person at a time. They can be exceeded by one for each replica
// that creates at the same moment, and for each creation that waited longer than lockTimeout. Each
// replica counts changes for itself.
type Quotas struct {
	// SitesPerOrg is how many sites an organization may have.
	SitesPerOrg int
	// KeysPerOrg is how many API keys an organization may have in force, as KeysOf counts them.
	KeysPerOrg int
	// KeysOf returns how many keys of an organization are in force, from memory. It must include
	// every key for which ServiceConfig.AwaitReplicas has returned. KeysPerOrg requires it.
	KeysOf func(orgID string) int
	// MembersPerOrg is how many members an organization may have, exactly.
	MembersPerOrg int
	// OrgsPerAccount is how many organizations a person may own, as OwnedBy counts them.
	OrgsPerAccount int
	// OwnedBy returns how many organizations an address owns, from memory. It must include every
	// organization for which ServiceConfig.AwaitReplicas has returned. OrgsPerAccount requires it.
	OwnedBy func(email string) int
	// ChangesPerHour is how many changes an organization may make within an hour, or at once.
	// One member, or key, may make half of them. Removing a key, a member, an invitation or a hub,
	// and resetting the link of a hub, is always allowed.
	ChangesPerHour int
	// PreferencesPerDay is how often a member may change within a day what concerns only that
	// member: the name and the mails. All members of an organization together may do so 100 times as
	// often. The directory keeps each change for ever, up to 8 KiB.
	PreferencesPerDay int
	// PendingInvitations is how many invitations of an organization may be pending, and
	// InvitationsPerHour how many it may make within an hour, exactly, over all replicas. Default
	// to domain.DefaultPendingInvitations and domain.DefaultInvitationsPerHour.
	PendingInvitations, InvitationsPerHour int
	// InvitationsPerAddress is how many invitations one mailbox may get within an hour from all
	// organizations, and half of it how many from one organization. It needs
	// ServiceConfig.RateLimiter.
	InvitationsPerAddress int
}

// standingRetryAfter is the Retry-After of a limit that waiting alone does not lift: something must
// be removed, or an operator must raise the limit.
const standingRetryAfter = time.Minute

// quotaState is what a Service keeps in memory for its Quotas.
type quotaState struct {
	// creations serializes counting and creating for one organization or one person.
	creations keyedMutex
	// changes counts the changes of an organization, and ofMembers of each of its members and
	// keys. preferences counts what the members of an organization choose for themselves, and
	// preferencesOfMembers what one of them does.
	changes, ofMembers, preferences, preferencesOfMembers *shares.Rate[string]
}

// checkSiteQuota returns rate_limited if the organization has Quotas.SitesPerOrg sites or more. The
// caller holds the organization's lock in quotaState.creations until the site is stored.
func (s *Service) checkSiteQuota(ctx context.Context, o domain.Origin, orgID string) error {
	limit := s.cfg.Quotas.SitesPerOrg
	if limit == 0 || o.Actor.Kind == domain.ActorOperator {
		return nil
	}
	n, err := s.log.countSubjects(ctx, streams.SiteSubject(orgID, "*"))
	if err != nil {
		return err
	}
	if n >= limit {
		return domain.RateLimited(
			standingRetryAfter,
			"the organization has %d sites; at most %d are allowed (--sites-per-org). Rename a "+
				"site that is no longer used, or ask the operator for more",
			n,
			limit,
		)
	}
	return nil
}

// checkKeyQuota returns rate_limited if the organization has Quotas.KeysPerOrg keys or more. The
// caller holds the organization's lock in quotaState.creations until the key is in force.
func (s *Service) checkKeyQuota(o domain.Origin, orgID string) error {
	q := s.cfg.Quotas
	if q.KeysPerOrg == 0 || q.KeysOf == nil || o.Actor.Kind == domain.ActorOperator {
		return nil
	}
	if n := q.KeysOf(orgID); n >= q.KeysPerOrg {
		return domain.RateLimited(
			standingRetryAfter,
			"the organization has %d API keys; at most %d are allowed. Revoke "+
				"one that is no longer used",
			n,
			q.KeysPerOrg,
		)
	}
	return nil
}

// checkMemberQuota returns rate_limited if the organization has Quotas.MembersPerOrg members or
// more.
func (s *Service) checkMemberQuota(org domain.OrgState) error {
	if limit := s.cfg.Quotas.MembersPerOrg; limit > 0 && len(org.Members) >= limit {
		return domain.RateLimited(
			standingRetryAfter,
			"the organization has %d members; at most %d are allowed",
			len(org.Members), limit,
		)
	}
	return nil
}

// checkOrgQuota returns rate_limited if the person owns Quotas.OrgsPerAccount organizations or
// more. The caller holds the person's lock in quotaState.creations until the organization is in
// force.
func (s *Service) checkOrgQuota(o domain.Origin, email string) error {
	q := s.cfg.Quotas
	if q.OrgsPerAccount == 0 || q.OwnedBy == nil || o.Actor.Kind == domain.ActorOperator {
		return nil
	}
	if n := q.OwnedBy(email); n >= q.OrgsPerAccount {
		return domain.RateLimited(
			standingRetryAfter,
			"you own %d organizations; at most %d are allowed. "+
				"Ask the operator for more",
			n, q.OrgsPerAccount,
		)
	}
	return nil
}

// checkInvitationMail returns an error when the invitation's mail cannot be queued, since an
// invitation without a mail is useless, and rate_limited when the recipient was invited too often.
func (s *Service) checkInvitationMail(
	ctx context.Context, orgID, email string, now time.Time,
) error {
	if err := s.cfg.Mailer.HasSpace(ctx, orgID, domain.NormalizeEmail(email)); err != nil {
		return err
	}
	limit := s.cfg.Quotas.InvitationsPerAddress
	if limit == 0 {
		return nil
	}
	if s.cfg.RateLimiter == nil {
		return errors.New("directory: Quotas.InvitationsPerAddress needs ServiceConfig.RateLimiter")
	}
	mailbox := domain.MailboxOf(email)
	for _, counter := range []struct {
		name  string
		limit int
	}{
		{"invitations of " + orgID + " to " + mailbox, (limit + 1) / 2},
		{"invitations to " + mailbox, limit},
	} {
		wait, err := s.cfg.RateLimiter.Allow(ctx, counter.name, counter.limit, counter.limit, now)
		if err != nil {
			return err
		}
		if wait > 0 {
			return domain.RateLimited(
				wait,
				"email: this address has been invited %d times within an hour; no more are "+
					"allowed (--invitations-per-address)",
				counter.limit,
			)
		}
	}
	return nil
}

// limitChanges returns decide with a check of Quotas.ChangesPerHour. Decisions that change nothing
// are not counted.
func limitChanges[S any](
	s *Service, o domain.Origin, orgID string, decide func(S) ([]domain.Event, error),
) func(S) ([]domain.Event, error) {
	return func(state S) ([]domain.Event, error) {
		events, err := decide(state)
		if err != nil || len(events) == 0 {
			return events, err
		}
		return events, s.takeChange(o, orgID)
	}
}

// takeChange returns rate_limited if the organization has made Quotas.ChangesPerHour changes.
func (s *Service) takeChange(o domain.Origin, orgID string) error {
	if o.Actor.Kind == domain.ActorOperator || o.Actor.Kind == domain.ActorService {
		return nil
	}
	now := s.cfg.Now()
	if a := s.quotas.ofMembers.Take(orgID+"/"+o.Actor.ID, now); !a.Granted {
		return domain.RateLimited(
			a.Next, "you have made %d changes within an hour; no more are allowed",
			s.quotas.ofMembers.Burst(),
		)
	}
	if a := s.quotas.changes.Take(orgID, now); !a.Granted {
		return domain.RateLimited(
			a.Next,
			"the organization has made %d changes within an hour; no more are allowed",
			s.quotas.changes.Burst(),
		)
	}
	return nil
}

// limitPreferences returns a function that checks Quotas.PreferencesPerDay for a decision of a
// member about itself.
func (s *Service) limitPreferences(
	o domain.Origin, orgID string,
) func([]domain.Event, error) ([]domain.Event, error) {
	return func(events []domain.Event, err error) ([]domain.Event, error) {
		if err != nil || len(events) == 0 {
			return events, err
		}
		now := s.cfg.Now()
		if a := s.quotas.preferencesOfMembers.Take(orgID+"/"+o.Actor.ID, now); !a.Granted {
			return nil, domain.RateLimited(
				a.Next, "you have changed your settings %d times within a day; no more are allowed",
				s.quotas.preferencesOfMembers.Burst(),
			)
		}
		if a := s.quotas.preferences.Take(orgID, now); !a.Granted {
			return nil, domain.RateLimited(
				a.Next, "the organization's members have changed their settings %d times within a "+
					"day; no more are allowed", s.quotas.preferences.Burst(),
			)
		}
		return events, nil
	}
}

// countSubjects counts the subjects with events that match a filter. In a cluster, a server that
// lags may answer and count too few: an organization can then create a few sites more.
func (l *Log) countSubjects(ctx context.Context, filter string) (int, error) {
	n, err := l.api.CountSubjects(ctx, streams.DirectoryStream, filter)
	if err != nil {
		return 0, readError(fmt.Errorf("directory: count %s: %w", filter, err))
	}
	return n, nil
}
