package directory

import (
	"context"
	"crypto/rand"
	"errors"

	"hubcloud/domain"
	"hubcloud/streams/jsapi"
)

// Hub returns a hub with every event that was acknowledged before the call, and the sequence of its
// last event. An unknown hub is the zero state and 0.
func (s *Service) Hub(ctx context.Context, hubID domain.HubID) (domain.HubState, uint64, error) {
	if _, ok := domain.ParseHubID(string(hubID)); !ok {
		return domain.HubState{}, 0, nil
	}
	return s.hubs.Get(ctx, string(hubID))
}

// AddHub adds a hub to an organization at one of its sites. A hub that the organization already has
// is moved there, and renamed if the command has a name. Of several organizations that add the same
// hub at once exactly one gets it. When AddHub returns, every replica knows the owner, or did not
// confirm that in time. It returns not_found for a site that the organization does not have, and
// hub_not_addable for a hub that cannot be added. It uses ServiceConfig.Presence.
func (s *Service) AddHub(
	ctx context.Context, o domain.Origin, c domain.AddHub,
) (domain.HubState, error) {
	var err error
	if c.Name, err = cleanOptional("name", c.Name); err != nil {
		return domain.HubState{}, err
	}
	if err := s.checkSite(ctx, c.OrgID, c.SiteID); err != nil {
		return domain.HubState{}, err
	}
	presence, err := s.fetchPresence(ctx, c.HubID)
	if err != nil {
		return domain.HubState{}, err
	}
	return s.addHub(ctx, o, c, presence)
}

// AddVirtualHub adds the organization's virtual hub, which the service runs from then on, at a site. It
// need not have connected before. A virtual hub that the organization has already stays where it is.
func (s *Service) AddVirtualHub(
	ctx context.Context, o domain.Origin, orgID, siteID string,
) (domain.HubState, error) {
	if s.cfg.VirtualSecret == nil {
		return domain.HubState{}, errors.New("directory: AddVirtualHub needs ServiceConfig.VirtualSecret")
	}
	if err := s.checkSite(ctx, orgID, siteID); err != nil {
		return domain.HubState{}, err
	}
	name := "Virtual hub"
	c := domain.AddHub{OrgID: orgID, HubID: domain.VirtualHubID(orgID), SiteID: siteID, Name: &name}
	hub, _, err := s.Hub(ctx, c.HubID)
	if err == nil && !hub.Registered {
		err = s.registerHub(ctx, o, c.HubID, domain.HashEnrolmentSecret(s.cfg.VirtualSecret(c.HubID)))
	}
	if err != nil || hub.OrgID == orgID {
		return hub, err
	}
	return s.addHub(ctx, o, c, &domain.Presence{})
}

// addHub adds a hub with that presence at a site that the caller has checked.
func (s *Service) addHub(
	ctx context.Context, o domain.Origin, c domain.AddHub, presence *domain.Presence,
) (domain.HubState, error) {
	o = s.stamp(o)
	epoch := newEpochID()
	decide := func(h domain.HubState) ([]domain.Event, error) {
		return domain.DecideAddHub(h, o, c, presence, epoch)
	}
	hub, seq, err := s.updateHub(ctx, c.HubID, limitChanges(s, o, c.OrgID, decide))
	if err != nil {
		return domain.HubState{}, err
	}
	s.awaitGranted(ctx, seq)
	return hub, nil
}

// fetchPresence returns the hub's presence; nil for a hub that has never connected.
func (s *Service) fetchPresence(ctx context.Context, hubID domain.HubID) (*domain.Presence, error) {
	if s.cfg.Presence == nil {
		return nil, errors.New("directory: AddHub needs ServiceConfig.Presence")
	}
	presence, ok, err := s.cfg.Presence.Fetch(ctx, hubID)
	if err != nil {
		return nil, jsapi.Unavailable(
			err,
			"the service cannot look up at the moment whether the hub has ever come online; "+
				"nothing was changed",
		)
	}
	if !ok {
		return nil, nil
	}
	return &presence, nil
}

// UpdateHub moves and renames a hub. It returns not_found for a hub or a site that the organization
// does not have.
func (s *Service) UpdateHub(
	ctx context.Context, o domain.Origin, c domain.UpdateHub,
) (domain.HubState, error) {
	var err error
	if c.SetName {
		if c.Name, err = cleanOptional("name", c.Name); err != nil {
			return domain.HubState{}, err
		}
	}
	if c.SiteID != nil {
		// The hub is checked before the site: another organization's hub is always "no such hub".
		if hub, _, err := s.Hub(ctx, c.HubID); err != nil {
			return domain.HubState{}, err
		} else if hub.OrgID == "" || hub.OrgID != c.OrgID {
			return domain.HubState{}, domain.ErrHubNotFound()
		}
		if err := s.checkSite(ctx, c.OrgID, *c.SiteID); err != nil {
			return domain.HubState{}, err
		}
	}
	o = s.stamp(o)
	decide := func(h domain.HubState) ([]domain.Event, error) {
		return domain.DecideUpdateHub(h, o, c)
	}
	hub, seq, err := s.updateHub(ctx, c.HubID, limitChanges(s, o, c.OrgID, decide))
	if err != nil {
		return domain.HubState{}, err
	}
	s.awaitReadable(ctx, seq)
	return hub, nil
}

// RemoveHub takes a hub away from its organization, as if it had never been added, and cuts its
// connection. Everyone who has the hub's serial can then add it. It returns not_found for a hub
// that the organization does not have. It uses ServiceConfig.Logs and Connections.
func (s *Service) RemoveHub(
	ctx context.Context, o domain.Origin, orgID string, hubID domain.HubID,
) error {
	// The hub is checked before its log is read: another organization's is always "no such hub".
	if hub, _, err := s.Hub(ctx, hubID); err != nil {
		return err
	} else if orgID == "" || hub.OrgID != orgID {
		return domain.ErrHubNotFound()
	}
	o = s.stamp(o)
	_, err := s.release(ctx, hubID, func(h domain.HubState, last uint64) ([]domain.Event, error) {
		return domain.DecideRemoveHub(h, o, orgID, last) // not limited: it ends access
	})
	if err != nil {
		return err
	}
	return jsapi.Unavailable(
		s.cfg.Connections.Disconnect(ctx, hubID),
		"the hub is removed, but its connection may stay open for some seconds",
	)
}

// ResetLink revokes a hub's certificate and then cuts its connections, so that a hub that connects
// in between is rejected. It changes nothing for a hub without a certificate. It returns not_found
// for a hub that the organization does not have. It uses ServiceConfig.Connections.
func (s *Service) ResetLink(
	ctx context.Context, o domain.Origin, orgID string, hubID domain.HubID,
) error {
	if s.cfg.Connections == nil {
		return errNoConnections("ResetLink")
	}
	o = s.stamp(o)
	revoked := ""
	decide := func(h domain.HubState) ([]domain.Event, error) {
		revoked = h.Certificate
		return domain.DecideRevokeCertificate(h, o, orgID)
	}
	// Not limited: it ends access, and a hub gets few certificates that could be revoked.
	hub, _, err := s.updateHub(ctx, hubID, decide)
	if err != nil || revoked == "" {
		return err
	}
	return jsapi.Unavailable(
		s.cfg.Connections.DisconnectRevoked(ctx, hubID, hub.RevokedCertificates),
		"the hub's certificate is revoked, but its connection may stay open for some seconds; "+
			"the request can be repeated",
	)
}

// IssueCertificate makes a certificate the hub's current one. It returns unauthenticated for a hub
// that is not in the inventory, is blocked, or has another secret by now, and rate_limited for a
// hub over ServiceConfig.HubCertificates.
func (s *Service) IssueCertificate(
	ctx context.Context, o domain.Origin, hubID domain.HubID, c domain.IssueCertificate,
) error {
	o = s.stamp(o)
	_, _, err := s.updateHub(ctx, hubID, func(h domain.HubState) ([]domain.Event, error) {
		return domain.DecideIssueCertificate(h, o, c, s.cfg.HubCertificates)
	})
	return err
}

// BeginEpoch begins a new event log for a hub that was reset. Repeated for the same log it does
// nothing. It returns not_found for a hub without an organization, and rate_limited for a hub over
// ServiceConfig.HubLogs.
func (s *Service) BeginEpoch(
	ctx context.Context, o domain.Origin, hubID domain.HubID, c domain.BeginEpoch,
) error {
	o = s.stamp(o)
	epoch := newEpochID()
	_, _, err := s.updateHub(ctx, hubID, func(h domain.HubState) ([]domain.Event, error) {
		return domain.DecideBeginEpoch(h, o, c, epoch, s.cfg.HubLogs)
	})
	return err
}

// RestoreLog begins another epoch of a hub's event log after a restore that brought the hub's
// stream back up to the sequence kept; 0 when the backup had none of it. It returns the id of the
// epoch that has ended, and not_found for a hub without an organization.
func (s *Service) RestoreLog(
	ctx context.Context, o domain.Origin, hubID domain.HubID, kept uint64,
) (ended domain.EpochID, err error) {
	o = s.stamp(o)
	epoch := newEpochID()
	_, _, err = s.updateHub(ctx, hubID, func(h domain.HubState) ([]domain.Event, error) {
		ended = h.Epoch.ID
		return domain.DecideRestoreLog(h, o, epoch, kept)
	})
	return ended, err
}

// updateHub calls hubs.Update. A malformed id must not become part of a subject: for one, updateHub
// calls decide with the zero state, which returns the error for an unknown hub.
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
