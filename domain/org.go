package domain

import (
	"fmt"
	"slices"
	"time"
)

// OrgState is an organization as its events leave it. The zero value is no organization.
type OrgState struct {
	ID        string
	Name      string
	CreatedAt time.Time
	// Members in the order in which they joined.
	Members []OrgMember
}

// OrgMember is a person in an organization.
type OrgMember struct {
	ID string
	// Email as it was given; NormalizeEmail compares.
	Email    string
	Role     Role
	JoinedAt time.Time
}

// Exists says whether there is such an organization.
func (s OrgState) Exists() bool { return s.ID != "" }

// DecideCreateOrg begins an organization with its first owner: it never is without one. Ids, name and address are given clean.
func DecideCreateOrg(s OrgState, o Origin, orgID, name, ownerID, ownerEmail string) ([]Event, error) {
	if s.Exists() {
		return nil, fmt.Errorf("organization %s is there already", orgID)
	}
	return []Event{
		Record(o, OrgCreated{OrgID: orgID, Name: name}),
		Record(o, MemberAdded{OrgID: orgID, MemberID: ownerID, Email: ownerEmail, Role: RoleOwner}),
	}, nil
}

// EvolveOrg folds an event into an organization.
func EvolveOrg(s OrgState, e Event) (OrgState, error) {
	fact, err := e.Fact()
	if err != nil {
		return s, err
	}
	switch f := fact.(type) {
	case OrgCreated:
		return OrgState{ID: f.OrgID, Name: f.Name, CreatedAt: e.At}, nil
	case MemberAdded:
		// The former state may be in someone's hands: its members are not touched.
		s.Members = append(slices.Clip(s.Members), OrgMember{ID: f.MemberID, Email: f.Email, Role: f.Role, JoinedAt: e.At})
		return s, nil
	default:
		return s, misplaced(e, "organization")
	}
}

// ErrOrgNotFound is the refusal for an organization that does not exist.
func ErrOrgNotFound() *Error { return Errorf(CodeNotFound, "no such organization") }
