package domain

import (
	"fmt"
	"time"
)

// SiteState is a site, folded from its events. The zero value is no site. The documentation of
// package schema lists what changes with a new field.
type SiteState struct {
	OrgID     string
	ID        string
	Name      string
	CreatedAt time.Time
}

// Exists reports whether the site exists.
func (s SiteState) Exists() bool { return s.ID != "" }

// View returns the site as readers see it, without its hubs: HubCount is 0.
func (s SiteState) View() Site {
	return Site{ID: s.ID, Name: s.Name, CreatedAt: s.CreatedAt}
}

// DecideCreateSite creates a site. The caller has validated the name.
func DecideCreateSite(s SiteState, o Origin, orgID, siteID, name string) ([]Event, error) {
	if s.Exists() {
		return nil, fmt.Errorf("site %s exists already", siteID)
	}
	return []Event{Record(o, SiteCreated{OrgID: orgID, SiteID: siteID, Name: name})}, nil
}

// DecideRenameSite renames a site; it returns no event if the name is the same. It returns
// not_found for a site that does not exist.
func DecideRenameSite(s SiteState, o Origin, name string) ([]Event, error) {
	if !s.Exists() {
		return nil, ErrSiteNotFound()
	}
	if s.Name == name {
		return nil, nil
	}
	return []Event{Record(o, SiteRenamed{OrgID: s.OrgID, SiteID: s.ID, Name: name})}, nil
}

// EvolveSite folds an event into a site's state.
func EvolveSite(s SiteState, e Event) (SiteState, error) {
	fact, err := e.Fact()
	if err != nil {
		return s, err
	}
	switch f := fact.(type) {
	case SiteCreated:
		return SiteState{OrgID: f.OrgID, ID: f.SiteID, Name: f.Name, CreatedAt: e.At}, nil
	case SiteRenamed:
		s.Name = f.Name
		return s, nil
	default:
		return s, misplaced(e, "site")
	}
}

// ErrSiteNotFound returns the not_found error for a site, the same for one that does not exist and
// for another organization's.
func ErrSiteNotFound() *Error { return Errorf(CodeNotFound, "no such site") }

// misplaced returns the error for an event that does not belong to an aggregate.
func misplaced(e Event, aggregate string) error {
	return fmt.Errorf("event %s (%s) does not belong to a %s", e.ID, e.Type, aggregate)
}
