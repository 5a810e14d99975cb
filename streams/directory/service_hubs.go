package directory

import (
	"context"
	"crypto/rand"

	"hubcloud/domain"
)

// AddHub asks that a hub be at a site of an organization.
type AddHub = domain.AddHub

// UpdateHub asks for another name or site of a hub.
type UpdateHub = domain.UpdateHub

// Hub gives a hub as it is now, and the sequence of its last event: what was acknowledged before
// the call is in it. A hub that the cloud does not know is the zero state and 0.
func (s *Service) Hub(ctx context.Context, hubID domain.HubID) (domain.HubState, uint64, error) {
	if _, ok := domain.ParseHubID(string(hubID)); !ok {
		return domain.HubState{}, 0, nil
	}
	return s.hubs.Get(ctx, string(hubID))
}

// RegisterHub puts a hub into the inventory, with the SHA-256 of its enrolment secret. One that is
// there already is an invalid_request.
func (s *Service) RegisterHub(
	ctx context.Context, o domain.Origin, hubID domain.HubID, secretHash []byte,
) error {
	if _, ok := domain.ParseHubID(string(hubID)); !ok {
		return domain.Errorf(
			domain.CodeInvalidRequest, "serial: is no Serial; one looks like HUB-7K2M-Q4XD-93TA",
		)
	}
	o = s.stamp(o)
	_, _, err := s.updateHub(ctx, hubID, func(h domain.HubState) ([]domain.Event, error) {
		return domain.DecideRegisterHub(h, o, hubID, secretHash)
	})
	return err
}

// AddHub adds a hub to an organization at one of its sites, or moves it there, and renames it if a
// name is given, when the organization has it already. A site that the organization does not have
// is not_found; a hub that cannot be added is hub_not_addable, for whatever reason. Of several
// organizations that race for a hub exactly one gets it. On return every replica knows the owner.
func (s *Service) AddHub(ctx context.Context, o domain.Origin, c AddHub) (domain.HubState, error) {
	var err error
	if c.Name, err = cleanOptional("name", c.Name); err != nil {
		return domain.HubState{}, err
	}
	if err := s.mustHaveSite(ctx, c.OrgID, c.SiteID); err != nil {
		return domain.HubState{}, err
	}
	o = s.stamp(o)
	epoch := newEpochID()
	hub, seq, err := s.updateHub(
		ctx,
		c.HubID,
		counted(s, o, c.OrgID, func(h domain.HubState) ([]domain.Event, error) {
			return domain.DecideAddHub(h, o, c, epoch)
		}),
	)
	if err != nil {
		return domain.HubState{}, err
	}
	s.granted(ctx, seq)
	return hub, nil
}

// UpdateHub moves and renames a hub. A hub or a site that the organization does not have is
// not_found.
func (s *Service) UpdateHub(
	ctx context.Context, o domain.Origin, c UpdateHub,
) (domain.HubState, error) {
	var err error
	if c.SetName {
		if c.Name, err = cleanOptional("name", c.Name); err != nil {
			return domain.HubState{}, err
		}
	}
	if c.SiteID != nil {
		// The hub comes first: who asks for a hub that is not theirs hears about the hub.
		if hub, _, err := s.Hub(ctx, c.HubID); err != nil {
			return domain.HubState{}, err
		} else if hub.OrgID == "" || hub.OrgID != c.OrgID {
			return domain.HubState{}, domain.ErrHubNotFound()
		}
		if err := s.mustHaveSite(ctx, c.OrgID, *c.SiteID); err != nil {
			return domain.HubState{}, err
		}
	}
	o = s.stamp(o)
	hub, seq, err := s.updateHub(
		ctx,
		c.HubID,
		counted(s, o, c.OrgID, func(h domain.HubState) ([]domain.Event, error) {
			return domain.DecideUpdateHub(h, o, c)
		}),
	)
	if err != nil {
		return domain.HubState{}, err
	}
	s.settled(ctx, seq)
	return hub, nil
}

// IssueCertificate makes a certificate (the SHA-256 of its DER form, 64 hexadecimal digits in lower
// case) the hub's current one. A hub that is not in the inventory, is blocked, or has another
// secret by now is unauthenticated. A hub over its limit is rate_limited.
func (s *Service) IssueCertificate(
	ctx context.Context, o domain.Origin, hubID domain.HubID, c domain.IssueCertificate,
) error {
	o = s.stamp(o)
	_, _, err := s.updateHub(ctx, hubID, func(h domain.HubState) ([]domain.Event, error) {
		return domain.DecideIssueCertificate(h, o, c, s.cfg.HubCertificates)
	})
	return err
}

// RevokeCertificate leaves a hub without a current certificate and gives the fingerprint of the one
// that was; empty when there was none. It does not cut the hub's connection. A hub that the
// organization does not have is not_found.
func (s *Service) RevokeCertificate(
	ctx context.Context, o domain.Origin, orgID string, hubID domain.HubID,
) (revoked string, err error) {
	o = s.stamp(o)
	_, _, err = s.updateHub(
		ctx,
		hubID,
		counted(s, o, orgID, func(h domain.HubState) ([]domain.Event, error) {
			revoked = h.Certificate
			return domain.DecideRevokeCertificate(h, o, orgID)
		}),
	)
	if err != nil {
		return "", err
	}
	return revoked, nil
}

// BeginLog begins a new event log for a hub that was reset. Repeated for the same log it does
// nothing. A hub that no organization has is not_found. A hub over its limit is rate_limited.
func (s *Service) BeginLog(
	ctx context.Context, o domain.Origin, hubID domain.HubID, c domain.BeginLog,
) error {
	o = s.stamp(o)
	epoch := newEpochID()
	_, _, err := s.updateHub(ctx, hubID, func(h domain.HubState) ([]domain.Event, error) {
		return domain.DecideBeginLog(h, o, c, epoch, s.cfg.HubLogs)
	})
	return err
}

// RestoreLog begins another epoch of a hub's event log after a restore that brought its stream back
// up to the sequence kept; 0 when there is none of it. A hub that nobody has added is not_found.
func (s *Service) RestoreLog(
	ctx context.Context, o domain.Origin, hubID domain.HubID, kept uint64,
) error {
	o = s.stamp(o)
	epoch := newEpochID()
	_, _, err := s.updateHub(ctx, hubID, func(h domain.HubState) ([]domain.Event, error) {
		return domain.DecideRestoreLog(h, o, epoch, kept)
	})
	return err
}

// updateHub is hubs.Update for an id that may be none: the domain then decides about a hub that
// nobody knows, and nothing is asked of the broker.
func (s *Service) updateHub(
	ctx context.Context, hubID domain.HubID, decide func(domain.HubState) ([]domain.Event, error),
) (domain.HubState, uint64, error) {
	if _, ok := domain.ParseHubID(string(hubID)); !ok {
		_, err := decide(domain.HubState{})
		return domain.HubState{}, 0, err
	}
	return s.hubs.Update(ctx, string(hubID), decide)
}

// cleanOptional is domain.CleanName for a text that may be missing.
func cleanOptional(field string, text *string) (*string, error) {
	if text == nil {
		return nil, nil
	}
	clean, err := domain.CleanName(field, *text)
	return &clean, err
}

// newEpochID returns a random id for an epoch of an event log.
func newEpochID() (id domain.EpochID) {
	for id.IsZero() {
		rand.Read(id[:]) // never fails: it ends the program instead
	}
	return id
}
