package directory

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/allowance"
)

// Quotas bound what one organization, or one person, can make the directory keep for ever. 0 is no
// bound. Operators are not bound.
//
// Sites are counted at the broker, keys and organizations in memory, and one process creates one
// after the other for an organization: replicas that create at the same moment can exceed a bound
// by one each. Changes are counted by each replica for itself.
type Quotas struct {
	// SitesPerOrg is how many sites an organization may have.
	SitesPerOrg int
	// KeysPerOrg is how many API keys an organization may have in force, as KeysOf counts them.
	KeysPerOrg int
	KeysOf     func(orgID string) int
	// MembersPerOrg is how many members an organization may have. It is decided with the
	// organization, and exact.
	MembersPerOrg int
	// OrgsPerAccount is how many organizations a person may own, as OwnedBy counts them.
	OrgsPerAccount int
	OwnedBy        func(email string) int
	// ChangesPerHour is how many changes an organization may make within an hour, all of which may
	// come at once. What takes something away (a key, a member, an invitation) is always possible.
	ChangesPerHour int
	// PendingInvitations is how many invitations of an organization may be pending, and
	// InvitationsPerHour how many it may make within an hour; 0 is the domain's default. Both hold
	// exactly, over all replicas.
	PendingInvitations, InvitationsPerHour int
	// MayInvite returns an error when an address may get no more invitations, of the organization
	// or of all; nil: nobody is asked.
	MayInvite func(ctx context.Context, orgID, email string, now time.Time) error
}

// standingRetryAfter is the Retry-After of a bound that passes only when somebody removes something
// or an operator raises it.
const standingRetryAfter = time.Minute

// quotaState is what a Service remembers of its Quotas.
type quotaState struct {
	turns   turns
	changes *allowance.Hourly
}

// overQuota returns the error for a bound that is reached.
func overQuota(retryAfter time.Duration, format string, args ...any) error {
	err := domain.Errorf(domain.CodeRateLimited, format, args...)
	err.RetryAfter = retryAfter
	return err
}

// admitSite refuses a site more than an organization may have. The caller has the organization's
// turn until the site is stored.
func (s *Service) admitSite(ctx context.Context, o domain.Origin, orgID string) error {
	most := s.cfg.Quotas.SitesPerOrg
	if most == 0 || o.Actor.Kind == domain.ActorOperator {
		return nil
	}
	n, err := s.log.subjects(ctx, streams.SiteSubject(orgID, "*"))
	if err != nil {
		return err
	}
	if n >= most {
		return overQuota(
			standingRetryAfter,
			"the organization has %d sites; at most %d are allowed (--sites-per-org). Rename a "+
				"site that is no longer used, or ask the operator for more",
			n,
			most,
		)
	}
	return nil
}

// admitKey refuses an API key more than an organization may have. The caller has the organization's
// turn until the key is in force.
func (s *Service) admitKey(o domain.Origin, orgID string) error {
	q := s.cfg.Quotas
	if q.KeysPerOrg == 0 || q.KeysOf == nil || o.Actor.Kind == domain.ActorOperator {
		return nil
	}
	if n := q.KeysOf(orgID); n >= q.KeysPerOrg {
		return overQuota(
			standingRetryAfter,
			"the organization has %d API keys; at most %d are allowed (--keys-per-org). Revoke "+
				"one that is no longer used",
			n,
			q.KeysPerOrg,
		)
	}
	return nil
}

// admitMember refuses a member more than an organization may have.
func (s *Service) admitMember(org domain.OrgState) error {
	if most := s.cfg.Quotas.MembersPerOrg; most > 0 && len(org.Members) >= most {
		return overQuota(
			standingRetryAfter,
			"the organization has %d members; at most %d are allowed (--members-per-org)",
			len(org.Members), most,
		)
	}
	return nil
}

// admitOrg refuses an organization more than a person may own. The caller has the person's turn
// until the organization is in force.
func (s *Service) admitOrg(o domain.Origin, email string) error {
	q := s.cfg.Quotas
	if q.OrgsPerAccount == 0 || q.OwnedBy == nil || o.Actor.Kind == domain.ActorOperator {
		return nil
	}
	if n := q.OwnedBy(email); n >= q.OrgsPerAccount {
		return overQuota(
			standingRetryAfter,
			"you own %d organizations; at most %d are allowed (--orgs-per-account). Ask the operator for more",
			n, q.OrgsPerAccount,
		)
	}
	return nil
}

// counted is decide, but refuses what it decides when the organization has made as many changes as
// it may. What changes nothing is not counted.
func counted[S any](
	s *Service, o domain.Origin, orgID string, decide func(S) ([]domain.Event, error),
) func(S) ([]domain.Event, error) {
	return func(state S) ([]domain.Event, error) {
		events, err := decide(state)
		if err != nil || len(events) == 0 {
			return events, err
		}
		return events, s.admitChange(o, orgID)
	}
}

func (s *Service) admitChange(o domain.Origin, orgID string) error {
	if o.Actor.Kind == domain.ActorOperator || o.Actor.Kind == domain.ActorService {
		return nil
	}
	if wait, ok := s.quotas.changes.Take(orgID, time.Now()); !ok {
		return overQuota(
			wait,
			"the organization has made %d changes within an hour; no more are allowed (--changes-per-org)",
			s.quotas.changes.Most(),
		)
	}
	return nil
}

// subjects counts the subjects that match a filter and have an event. In a cluster a server that
// knows of no leader may answer, and know less: then an organization gets a few sites more.
func (l *Log) subjects(ctx context.Context, filter string) (int, error) {
	question, err := json.Marshal(struct {
		Filter string `json:"subjects_filter"`
		// Offset is behind all subjects: only their number is wanted.
		Offset int `json:"offset"`
	}{filter, 1 << 30})
	if err != nil {
		return 0, err
	}
	text, err := streams.Ask(ctx, l.nc, "$JS.API.STREAM.INFO."+streams.DirectoryStream, question)
	if err != nil {
		return 0, unread(fmt.Errorf("directory: count %s: %w", filter, err))
	}
	var answer struct {
		Error *streams.BrokerError `json:"error"`
		Total int                  `json:"total"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return 0, fmt.Errorf("directory: count %s: unreadable answer: %w", filter, err)
	}
	if answer.Error != nil {
		return 0, unread(fmt.Errorf("directory: count %s: %w", filter, answer.Error))
	}
	return answer.Total, nil
}
