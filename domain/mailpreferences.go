package domain

import "slices"

// MaxMailSites is how many sites a member may choose for mails about conditions.
const MaxMailSites = 200

// MailPreferences are the conditions that a member gets mails about.
type MailPreferences struct {
	// Severities are the severities to mail about. Without any the member gets no mails.
	Severities []Severity
	// Sites are the sites of the conditions; nil means all sites.
	Sites []string
}

// Wants reports whether the member gets mails about conditions of a severity at a site.
func (p MailPreferences) Wants(severity Severity, site string) bool {
	return slices.Contains(p.Severities, severity) &&
		(p.Sites == nil || slices.Contains(p.Sites, site))
}

// None reports whether the member gets no mails about conditions.
func (p MailPreferences) None() bool { return len(p.Severities) == 0 }

func (p MailPreferences) equal(other MailPreferences) bool {
	return slices.Equal(p.Severities, other.Severities) && slices.Equal(p.Sites, other.Sites) &&
		(p.Sites == nil) == (other.Sites == nil)
}

// DefaultMailPreferences returns the preferences of a member who has chosen none: owners and admins
// get mails about the alarms of all sites, members get none.
func DefaultMailPreferences(role Role) MailPreferences {
	if role == RoleOwner || role == RoleAdmin {
		return MailPreferences{Severities: []Severity{SeverityAlarm}}
	}
	return MailPreferences{}
}

// MailPreferences returns what the member has chosen, or else the default of the role.
func (m OrgMember) MailPreferences() MailPreferences {
	if m.Mails != nil {
		return *m.Mails
	}
	return DefaultMailPreferences(m.Role)
}

// DecideSetMailPreferences sets a member's mail preferences; it returns no event if they are the
// same. Members set their own. The caller has checked that the organization has the sites. It
// returns not_found for an unknown member, forbidden for another actor, and invalid_request for
// unknown severities, no sites and too many sites.
func DecideSetMailPreferences(
	s OrgState, o Origin, memberID string, p MailPreferences,
) ([]Event, error) {
	member, ok := s.Member(memberID)
	if !ok {
		return nil, ErrMemberNotFound()
	}
	if o.Actor != (Actor{Kind: ActorMember, ID: memberID}) {
		return nil, Errorf(CodeForbidden, "members choose their own mails")
	}
	for _, severity := range p.Severities {
		if !slices.Contains(Severities, severity) {
			return nil, Errorf(CodeInvalidRequest, "severities: must be %s or %s, not %q",
				SeverityAlarm, SeverityWarning, severity)
		}
	}
	switch {
	case p.Sites != nil && len(p.Sites) == 0:
		return nil, Errorf(CodeInvalidRequest, "sites: choose at least one site, or all sites")
	case len(p.Sites) > MaxMailSites:
		return nil, Errorf(
			CodeInvalidRequest, "sites: at most %d sites can be chosen; choose all sites instead",
			MaxMailSites,
		)
	}
	p = p.normalized()
	if member.Mails != nil && member.Mails.equal(p) {
		return nil, nil
	}
	return []Event{Record(o, MailPreferencesSet{
		OrgID: s.ID, MemberID: memberID, Severities: p.Severities, Sites: p.Sites,
	})}, nil
}

// normalized returns the preferences without repeats, severities in the order of urgency.
func (p MailPreferences) normalized() MailPreferences {
	severities := []Severity{}
	for _, severity := range Severities {
		if slices.Contains(p.Severities, severity) {
			severities = append(severities, severity)
		}
	}
	if p.Sites == nil {
		return MailPreferences{Severities: severities}
	}
	return MailPreferences{
		Severities: severities, Sites: slices.Compact(slices.Sorted(slices.Values(p.Sites))),
	}
}

func (s OrgState) withMailPreferences(f MailPreferencesSet) OrgState {
	return s.withMember(f.MemberID, func(m *OrgMember) {
		m.Mails = &MailPreferences{Severities: f.Severities, Sites: f.Sites}
	})
}
