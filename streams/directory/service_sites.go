package directory

import (
	"context"
	"strings"

	"hubcloud/domain"
	"hubcloud/streams"
)

// siteAggregate returns the id of a site in the repository of sites.
func siteAggregate(orgID, siteID string) string { return orgID + "." + siteID }

func siteSubject(aggregate string) string {
	orgID, siteID, _ := strings.Cut(aggregate, ".")
	return streams.SiteSubject(orgID, siteID)
}

// CreateSite creates a site of an organization with a new id. It fails like
// CreateSiteWithID.
func (s *Service) CreateSite(
	ctx context.Context, o domain.Origin, orgID, name string,
) (domain.SiteState, error) {
	return s.CreateSiteWithID(ctx, o, orgID, "", name)
}

// CreateSiteWithID creates a site of an organization with an id of the caller, a UUIDv7, or with a
// new id if siteID is empty. It returns a site that already has the id unchanged: the caller
// created it before and lost the answer. It returns not_found for an unknown organization, and
// rate_limited for a site over Quotas.SitesPerOrg.
func (s *Service) CreateSiteWithID(
	ctx context.Context, o domain.Origin, orgID, siteID, name string,
) (domain.SiteState, error) {
	name, err := domain.CleanName("name", name)
	if err != nil {
		return domain.SiteState{}, err
	}
	if _, err := s.Org(ctx, orgID); err != nil {
		return domain.SiteState{}, err
	}
	o = s.stamp(o)
	mayExist := siteID != ""
	if !mayExist {
		siteID = s.newID(o)
	}
	decide := func(site domain.SiteState) ([]domain.Event, error) {
		if mayExist && site.Exists() {
			return nil, nil
		}
		if err := s.checkSiteQuota(ctx, o, orgID); err != nil {
			return nil, err
		}
		return domain.DecideCreateSite(site, o, orgID, siteID, name)
	}
	// The lock is held while the organization's sites are counted and the new one is stored, and
	// not during the wait for the read models.
	unlock := s.quotas.creations.lock(ctx, "sites "+orgID)
	site, seq, err := s.sites.Update(
		ctx, siteAggregate(orgID, siteID), limitChanges(s, o, orgID, decide),
	)
	unlock()
	if err != nil {
		return domain.SiteState{}, err
	}
	s.awaitReadable(ctx, seq)
	return site, nil
}

// RenameSite renames a site. It returns not_found for a site that the organization does not have.
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
	decide := func(site domain.SiteState) ([]domain.Event, error) {
		return domain.DecideRenameSite(site, o, name)
	}
	site, seq, err := s.sites.Update(
		ctx, siteAggregate(orgID, siteID), limitChanges(s, o, orgID, decide),
	)
	if err != nil {
		return domain.SiteState{}, err
	}
	s.awaitReadable(ctx, seq)
	return site, nil
}

// checkSite returns not_found for a site that the organization does not have.
func (s *Service) checkSite(ctx context.Context, orgID, siteID string) error {
	if !domain.IsUUID(orgID) || !domain.IsUUID(siteID) {
		return domain.ErrSiteNotFound()
	}
	site, _, err := s.sites.Get(ctx, siteAggregate(orgID, siteID))
	if err == nil && !site.Exists() {
		err = domain.ErrSiteNotFound()
	}
	return err
}

// checkSites returns invalid_request for a site that the organization does not have.
func (s *Service) checkSites(ctx context.Context, orgID string, sites []string) error {
	for _, site := range sites {
		switch err := s.checkSite(ctx, orgID, site); {
		case domain.CodeOf(err) == domain.CodeNotFound:
			return domain.Errorf(domain.CodeInvalidRequest, "sites: %q is no site", site)
		case err != nil:
			return err
		}
	}
	return nil
}
