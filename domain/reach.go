package domain

import "slices"

// Reach is what the holder of an API key can see and change: an organization, or the part of it that
// is at some of its sites. It is decided here, and nowhere else: what is outside is for the holder
// as if it did not exist.
type Reach struct {
	OrgID string
	// Sites are the sites that are reached; nil for all of the organization.
	Sites []string
}

// Limited reports whether only a part of the organization is reached.
func (r Reach) Limited() bool { return r.Sites != nil }

// HasSite reports whether a site of the organization is reached.
func (r Reach) HasSite(site string) bool { return !r.Limited() || slices.Contains(r.Sites, site) }

// HasHub reports whether a hub is reached. The site where the hub is now decides.
func (r Reach) HasHub(hub HubAccess) bool { return hub.OrgID == r.OrgID && r.HasSite(hub.SiteID) }

// Site returns the id of a site that is reached, and otherwise an id that no site has, so that
// a request about the site takes the same way, and as long, as one about no site.
func (r Reach) Site(id string) string {
	if r.HasSite(id) {
		return id
	}
	return NoID
}

// NoID is a UUID that is the id of nothing.
const NoID = "00000000-0000-0000-0000-000000000000"

// HasFilter reports whether a webhook with that filter gets nothing but what is reached.
func (r Reach) HasFilter(f EventFilter) bool {
	return !r.Limited() || len(f.Sites) > 0 &&
		!slices.ContainsFunc(f.Sites, func(site string) bool { return !r.HasSite(site) })
}

// LimitFilter returns the filter of a webhook that gets nothing but what is reached: all of it, if
// the filter names no sites. It returns invalid_request for a site that is not reached.
func (r Reach) LimitFilter(f EventFilter) (EventFilter, error) {
	if len(f.Sites) == 0 {
		f.Sites = r.Sites
	}
	if !r.HasFilter(f) {
		return f, Errorf(
			CodeInvalidRequest, "filter.site_id: must be sites that the API key reaches",
		)
	}
	return f, nil
}

// WholeOrganization returns forbidden if only a part of the organization is reached: the change
// concerns more.
func (r Reach) WholeOrganization(change string) error {
	if !r.Limited() {
		return nil
	}
	return Errorf(CodeForbidden, "the API key is limited to sites: it cannot %s", change)
}
