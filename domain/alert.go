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
	MaxSeenConditions = 1000
	// maxConditionID is the longest id of a condition, in bytes.
	maxConditionID = 200
)

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

// DecideSeeCondition records that a member has seen a condition; it returns no event if somebody
// has seen that occurrence. The caller has checked that the organization has the hub. It returns
// invalid_request for an id that is no condition's, and not_found for an unknown organization.
func DecideSeeCondition(
	s OrgState, o Origin, hub HubID, condition string, since time.Time,
) ([]Event, error) {
	if !s.Exists() {
		return nil, ErrOrgNotFound()
	}
	if condition == "" || len(condition) > maxConditionID || since.IsZero() {
		return nil, Errorf(CodeInvalidRequest, "condition: is not a condition of the hub")
	}
	if _, seen := s.SeenCondition(hub, condition, since); seen {
		return nil, nil
	}
	return []Event{Record(o, ConditionSeen{
		OrgID: s.ID, HubID: hub, Condition: condition, Since: since.UTC(),
	})}, nil
}

func (s OrgState) withSeen(e Event, f ConditionSeen) OrgState {
	s.Seen = slices.Clone(s.Seen)
	if i := s.seenAt(f.HubID, f.Condition); i >= 0 {
		s.Seen = slices.Delete(s.Seen, i, i+1)
	}
	s.Seen = append(s.Seen, SeenCondition{
		HubID: f.HubID, Condition: f.Condition, Since: f.Since, MemberID: e.Actor.ID, At: e.At,
	})
	s.Seen = s.Seen[max(0, len(s.Seen)-MaxSeenConditions):]
	return s
}
