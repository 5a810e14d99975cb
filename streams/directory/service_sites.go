package directory

import (
	"context"
	"strings"

	"hubcloud/domain"
	"hubcloud/streams"
)

// A site's id in its repository is that of its organization and its own, which its subject consists
// of.

func siteKey(orgID, siteID string) string { return orgID + "." + siteID }

func siteSubject(key string) string {
	orgID, siteID, _ := strings.Cut(key, ".")
	return streams.SiteSubject(orgID, siteID)
}

// CreateSite begins a site of an organization.
func (s *Service) CreateSite(
	ctx context.Context, o domain.Origin, orgID, name string,
) (domain.SiteState, error) {
	return s.CreateSiteAs(ctx, o, orgID, "", name)
}

// CreateSiteAs begins a site of an organization under an id that the caller has made for it, a
// UUIDv7; an empty id makes one. A site of the organization that has the id already is returned as
// it is: the caller has created it before, and did not hear of it.
func (s *Service) CreateSiteAs(
	ctx context.Context, o domain.Origin, orgID, siteID, name string,
) (domain.SiteState, error) {
	name, err := domain.CleanName("name", name)
	if err != nil {
		return domain.SiteState{}, err
	}
	if _, err := s.org(ctx, orgID); err != nil {
		return domain.SiteState{}, err
	}
	o = s.stamp(o)
	again := siteID != ""
	if !again {
		siteID = s.newID(o)
	}
	leave := s.quotas.turns.take(ctx, "sites "+orgID)
	site, seq, err := s.sites.Update(
		ctx,
		siteKey(orgID, siteID),
		counted(s, o, orgID, func(site domain.SiteState) ([]domain.Event, error) {
			if again && site.Exists() {
				return nil, nil
			}
			if err := s.admitSite(ctx, o, orgID); err != nil {
				return nil, err
			}
			return domain.DecideCreateSite(site, o, orgID, siteID, name)
		}),
	)
	leave()
	if err != nil {
		return domain.SiteState{}, err
	}
	s.settled(ctx, seq)
	return site, nil
}

// RenameSite gives a site another name. A site that the organization does not have is not_found.
func (s *Service) RenameSite(
	ctx context.Context, o domain.Origin, orgID, siteID, name string,
) (domain.SiteState, error) {
	name, err := domain.CleanName("name", name)
	if err != nil {
		return domain.SiteState{}, err
	}
	if !domain.IsUUID(orgID) || !domain.IsUUID(siteID) {
		return domain.SiteState{}, domain.ErrSiteNotFound()
	}
	o = s.stamp(o)
	site, seq, err := s.sites.Update(
		ctx,
		siteKey(orgID, siteID),
		counted(s, o, orgID, func(site domain.SiteState) ([]domain.Event, error) {
			return domain.DecideRenameSite(site, o, name)
		}),
	)
	if err != nil {
		return domain.SiteState{}, err
	}
	s.settled(ctx, seq)
	return site, nil
}

// mustHaveSite refuses a site that the organization does not have: not_found.
func (s *Service) mustHaveSite(ctx context.Context, orgID, siteID string) error {
	if !domain.IsUUID(orgID) || !domain.IsUUID(siteID) {
		return domain.ErrSiteNotFound()
	}
	site, _, err := s.sites.Get(ctx, siteKey(orgID, siteID))
	if err == nil && !site.Exists() {
		err = domain.ErrSiteNotFound()
	}
	return err
}
