package domain

import (
	"fmt"
	"time"
)

// SiteState is a site as its events leave it. The zero value is no site.
type SiteState struct {
	OrgID     string
	ID        string
	Name      string
	CreatedAt time.Time
}

// Exists says whether there is such a site.
func (s SiteState) Exists() bool { return s.ID != "" }

// DecideCreateSite begins a site. Id and name are given clean.
func DecideCreateSite(s SiteState, o Origin, orgID, siteID, name string) ([]Event, error) {
	if s.Exists() {
		return nil, fmt.Errorf("site %s is there already", siteID)
	}
	return []Event{Record(o, SiteCreated{OrgID: orgID, SiteID: siteID, Name: name})}, nil
}

// DecideRenameSite gives a site another name; the same name is no event. A site that does not exist
// is not_found.
func DecideRenameSite(s SiteState, o Origin, name string) ([]Event, error) {
	if !s.Exists() {
		return nil, ErrSiteNotFound()
	}
	if s.Name == name {
		return nil, nil
	}
	return []Event{Record(o, SiteRenamed{OrgID: s.OrgID, SiteID: s.ID, Name: name})}, nil
}

// EvolveSite folds an event into a site.
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

// ErrSiteNotFound is the refusal for a site that the organization does not have, whoever else may
// have it.
func ErrSiteNotFound() *Error { return Errorf(CodeNotFound, "no such site") }

// misplaced is the error for an event that does not belong to the aggregate it was found in.
func misplaced(e Event, aggregate string) error {
	return fmt.Errorf("event %s (%s) is no event of a %s", e.ID, e.Type, aggregate)
}
