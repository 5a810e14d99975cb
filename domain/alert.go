package domain

import (
	"slices"
	"time"
)

// Severity is how urgent a condition is that needs attention.
type Severity string

// The severities.
const (
	// SeverityAlarm: people, the building or a command are concerned now.
	SeverityAlarm Severity = "alarm"
	// SeverityWarning: something will fail, or cannot be seen at present.
	SeverityWarning Severity = "warning"
)

// Severities are all severities, the most urgent first.
var Severities = []Severity{SeverityAlarm, SeverityWarning}

const (
	// MaxSeenConditions is how many seen conditions an organization's state keeps.
	MaxSeenConditions = 3000
	// MaxSeenAtOnce is how many conditions a member can mark as seen at once.
	MaxSeenAtOnce = 2000
	// maxConditionID is the longest id of a condition, in bytes.
	maxConditionID = 200
)

// Occurrence is an occurrence of a condition of a hub, the one that began at Since, and no later
// one.
type Occurrence struct {
	HubID HubID `json:"hub_id"`
	// Condition identifies the condition among the hub's conditions.
	Condition string    `json:"condition"`
	Since     time.Time `json:"since"`
}

// SeenCondition is an occurrence of a condition that a member has seen.
type SeenCondition struct {
	HubID     HubID
	Condition string
	// Since is when the occurrence began.
	Since time.Time
	// MemberID is the member who has seen it first, and At when.
	MemberID string
	At       time.Time
}

// SeenCondition returns who has seen an occurrence of a condition; false if nobody has.
func (s OrgState) SeenCondition(
	hub HubID, condition string, since time.Time,
) (SeenCondition, bool) {
	i := s.seenAt(hub, condition)
	if i < 0 || !s.Seen[i].Since.Equal(since) {
		return SeenCondition{}, false
	}
	return s.Seen[i], true
}

func (s OrgState) seenAt(hub HubID, condition string) int {
	return slices.IndexFunc(s.Seen, func(seen SeenCondition) bool {
		return seen.HubID == hub && seen.Condition == condition
	})
}

// DecideSeeConditions records that a member has seen occurrences of conditions; it returns no event
// if somebody has seen them all. The caller has checked that the organization has the hubs. It
// returns invalid_request for an id that is no condition's and for too many, and not_found for an
// unknown organization.
func DecideSeeConditions(s OrgState, o Origin, occurrences []Occurrence) ([]Event, error) {
	if !s.Exists() {
		return nil, ErrOrgNotFound()
	}
	if len(occurrences) > MaxSeenAtOnce {
		return nil, Errorf(CodeInvalidRequest, "condition: at most %d at once", MaxSeenAtOnce)
	}
	var fresh []Occurrence
	for _, c := range occurrences {
		if c.Condition == "" || len(c.Condition) > maxConditionID || c.Since.IsZero() {
			return nil, Errorf(CodeInvalidRequest, "condition: is not a condition of the hub")
		}
		if _, seen := s.SeenCondition(c.HubID, c.Condition, c.Since); !seen {
			c.Since = c.Since.UTC()
			fresh = append(fresh, c)
		}
	}
	if len(fresh) == 0 {
		return nil, nil
	}
	return []Event{Record(o, ConditionSeen{
		OrgID: s.ID, Occurrence: fresh[0], More: fresh[1:],
	})}, nil
}

// DecideUnseeConditions takes back that occurrences of conditions were seen; it returns no event if
// nobody has seen any of them. What was seen of a battery has another time, so times do not matter.
func DecideUnseeConditions(s OrgState, o Origin, occurrences []Occurrence) ([]Event, error) {
	if !s.Exists() {
		return nil, ErrOrgNotFound()
	}
	var seen []Occurrence
	for _, c := range occurrences {
		if s.seenAt(c.HubID, c.Condition) >= 0 {
			seen = append(seen, c)
		}
	}
	if len(seen) == 0 {
		return nil, nil
	}
	return []Event{Record(o, ConditionUnseen{OrgID: s.ID, Occurrences: seen})}, nil
}

func (s OrgState) withUnseen(f ConditionUnseen) OrgState {
	s.Seen = slices.Clone(s.Seen)
	for _, c := range f.Occurrences {
		if i := s.seenAt(c.HubID, c.Condition); i >= 0 {
			s.Seen = slices.Delete(s.Seen, i, i+1)
		}
	}
	return s
}

func (s OrgState) withSeen(e Event, f ConditionSeen) OrgState {
	s.Seen = slices.Clone(s.Seen)
	for _, c := range append([]Occurrence{f.Occurrence}, f.More...) {
		if i := s.seenAt(c.HubID, c.Condition); i >= 0 {
			s.Seen = slices.Delete(s.Seen, i, i+1)
		}
		s.Seen = append(s.Seen, SeenCondition{
			HubID: c.HubID, Condition: c.Condition, Since: c.Since, MemberID: e.Actor.ID, At: e.At,
		})
	}
	s.Seen = s.Seen[max(0, len(s.Seen)-MaxSeenConditions):]
	return s
}
