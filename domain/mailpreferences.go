package domain

import (
	"slices"
	"time"
)

// MaxMailSites is how many sites a member may choose for mails about conditions.
const MaxMailSites = 200

// MailTopic is what conditions are about, for the choice of mails.
type MailTopic string

// The topics of alarms, and then those of warnings.
const (
	MailSmoke     MailTopic = "smoke" // and heat
	MailGas       MailTopic = "gas"   // and carbon monoxide
	MailEmergency MailTopic = "emergency"
	MailWater     MailTopic = "water"
	MailSecurity  MailTopic = "security" // tampering and other alarms, such as an intrusion
	MailLocks     MailTopic = "locks"    // jammed, or not locked
	MailHubs      MailTopic = "hubs"     // offline
	MailBatteries MailTopic = "batteries"
	MailFaults    MailTopic = "faults"   // devices out of reach, hubs that do not report, service
	MailCommands  MailTopic = "commands" // not carried out, or taken back by hand
)

// AlarmTopics and WarningTopics are the topics of conditions of each severity, the most urgent first.
// They must not be changed.
var (
	AlarmTopics = []MailTopic{
		MailSmoke, MailGas, MailEmergency, MailWater, MailSecurity, MailLocks, MailHubs,
	}
	WarningTopics = []MailTopic{MailBatteries, MailFaults, MailCommands}
)

// MailPreferences are the conditions that a member gets mails about.
type MailPreferences struct {
	// Topics are the topics to mail about. Without any the member gets no mails.
	Topics []MailTopic
	// Sites are the sites of the conditions; nil means all sites.
	Sites []string
	// Quiet are the hours in which mails about warnings wait; nil means none. Alarms never wait.
	Quiet *QuietHours
}

// QuietHours are hours of every day.
type QuietHours struct {
	// From and To are times of day such as 22:00. To may be on the next day.
	From string `json:"from"`
	To   string `json:"to"`
	// Zone is the name of the time zone, such as Europe/Berlin.
	Zone string `json:"zone"`
}

// clockOfDay is the layout of a time of day.
const clockOfDay = "15:04"

// Until returns when the quiet hours that a time is in end; zero if it is in none.
func (q *QuietHours) Until(at time.Time) time.Time {
	if q == nil {
		return time.Time{}
	}
	from, to, zone, err := q.parse()
	if err != nil {
		return time.Time{}
	}
	at = at.In(zone)
	onDay := func(clock time.Time, days int) time.Time {
		year, month, day := at.Date()
		return time.Date(year, month, day+days, clock.Hour(), clock.Minute(), 0, 0, zone)
	}
	begin, end := onDay(from, 0), onDay(to, 0)
	if from.After(to) { // over midnight
		if at.Before(end) {
			return end
		}
		end = onDay(to, 1)
	}
	if at.Before(begin) || !at.Before(end) {
		return time.Time{}
	}
	return end
}

// parse returns the times of day and the zone; invalid_request if one is none.
func (q *QuietHours) parse() (from, to time.Time, zone *time.Location, err error) {
	from, fromErr := time.Parse(clockOfDay, q.From)
	to, toErr := time.Parse(clockOfDay, q.To)
	zone, zoneErr := time.LoadLocation(q.Zone) // it rejects paths
	switch {
	case fromErr != nil || toErr != nil:
		err = Errorf(CodeInvalidRequest, "quiet: both must be times of day, such as 22:00 and 07:00")
	case from.Equal(to):
		err = Errorf(CodeInvalidRequest, "quiet: must begin and end at different times")
	case zoneErr != nil || q.Zone == "Local" || len(q.Zone) > 64: // Local is the machine's
		err = Errorf(CodeInvalidRequest, "quiet: must be in a known time zone")
	}
	return from, to, zone, err
}

// Wants reports whether the member gets mails about conditions of a topic at a site.
func (p MailPreferences) Wants(topic MailTopic, site string) bool {
	return slices.Contains(p.Topics, topic) && (p.Sites == nil || slices.Contains(p.Sites, site))
}

// None reports whether the member gets no mails about conditions.
func (p MailPreferences) None() bool { return len(p.Topics) == 0 }

func (p MailPreferences) equal(other MailPreferences) bool {
	return slices.Equal(p.Topics, other.Topics) && slices.Equal(p.Sites, other.Sites) &&
		(p.Sites == nil) == (other.Sites == nil) && (p.Quiet == nil) == (other.Quiet == nil) &&
		(p.Quiet == nil || *p.Quiet == *other.Quiet)
}

// DefaultMailPreferences returns the preferences of a member who has chosen none: owners and admins
// get mails about the alarms of all sites, members get none.
func DefaultMailPreferences(role Role) MailPreferences {
	if role == RoleOwner || role == RoleAdmin {
		return MailPreferences{Topics: AlarmTopics}
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
// unknown topics, no sites, too many sites and quiet hours that are none.
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
	all := slices.Concat(AlarmTopics, WarningTopics)
	for _, topic := range p.Topics {
		if !slices.Contains(all, topic) {
			return nil, Errorf(CodeInvalidRequest, "topics: must be among %s, not %q", join(all), topic)
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
	if p.Quiet != nil {
		if _, _, _, err := p.Quiet.parse(); err != nil {
			return nil, err
		}
	}
	p = p.normalized()
	if member.Mails != nil && member.Mails.equal(p) {
		return nil, nil
	}
	return []Event{Record(o, MailPreferencesSet{
		OrgID: s.ID, MemberID: memberID, Topics: p.Topics, Sites: p.Sites, Quiet: p.Quiet,
	})}, nil
}

// normalized returns the preferences without repeats, topics in the order of urgency.
func (p MailPreferences) normalized() MailPreferences {
	topics := slices.DeleteFunc(slices.Concat(AlarmTopics, WarningTopics), func(t MailTopic) bool {
		return !slices.Contains(p.Topics, t)
	})
	if p.Topics = topics; p.Sites != nil {
		p.Sites = slices.Compact(slices.Sorted(slices.Values(p.Sites)))
	}
	return p
}

func (s OrgState) withMailPreferences(f MailPreferencesSet) OrgState {
	return s.withMember(f.MemberID, func(m *OrgMember) {
		m.Mails = &MailPreferences{Topics: f.Topics, Sites: f.Sites, Quiet: f.Quiet}
	})
}
