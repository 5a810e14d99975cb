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
	// Members in the order in which they joined. One of them at least is an owner, and no two have
	// the same address.
	Members []OrgMember
	// Invitations that can still be accepted, or could until they expired, oldest first: at most
	// one an address, and none of a member's. Of those that have expired the newest
	// MaxExpiredInvitations are remembered.
	Invitations []OrgInvitation
	// InvitedAt is when the newest MaxInvitationsPerHour invitations were made, oldest first,
	// whatever became of them.
	InvitedAt []time.Time
}

// OrgMember is a person in an organization.
type OrgMember struct {
	ID string
	// Email as it was given, Address its NormalizeEmail.
	Email    string
	Address  string
	Role     Role
	JoinedAt time.Time
	// Accepted is the invitation by which the person came; its ID is empty for the first owner.
	Accepted OrgInvitation
}

// Exists says whether there is such an organization.
func (s OrgState) Exists() bool { return s.ID != "" }

// DecideCreateOrg begins an organization with its first owner: it never is without one. Ids, name
// and address are given clean.
func DecideCreateOrg(
	s OrgState, o Origin, orgID, name, ownerID, ownerEmail string,
) ([]Event, error) {
	if s.Exists() {
		return nil, fmt.Errorf("organization %s is there already", orgID)
	}
	return []Event{
		Record(o, OrgCreated{OrgID: orgID, Name: name}),
		Record(o, MemberAdded{OrgID: orgID, MemberID: ownerID, Email: ownerEmail, Role: RoleOwner}),
	}, nil
}

// EvolveOrg folds an event into an organization. The former state may be in someone's hands: its
// lists are not touched.
func EvolveOrg(s OrgState, e Event) (OrgState, error) {
	fact, err := e.Fact()
	if err != nil {
		return s, err
	}
	switch f := fact.(type) {
	case OrgCreated:
		return OrgState{ID: f.OrgID, Name: f.Name, CreatedAt: e.At}, nil
	case MemberAdded:
		s.Members = append(slices.Clip(s.Members), OrgMember{
			ID: f.MemberID, Email: f.Email, Address: NormalizeEmail(f.Email), Role: f.Role,
			JoinedAt: e.At,
		})
	case MemberRoleChanged:
		s.Members = slices.Clone(s.Members)
		for i := range s.Members {
			if s.Members[i].ID == f.MemberID {
				s.Members[i].Role = f.Role
			}
		}
	case MemberRemoved:
		s.Members = slices.DeleteFunc(slices.Clone(s.Members), func(m OrgMember) bool { return m.ID == f.MemberID })
	case MemberInvited:
		return s.invite(e, f)
	case MemberInvitationRevoked:
		s.Invitations = withoutInvitation(s.Invitations, f.InvitationID)
	case MemberInvitationAccepted:
		s.acceptInvitation(f)
	default:
		return s, misplaced(e, "organization")
	}
	return s, nil
}

// ErrOrgNotFound is the refusal for an organization that does not exist.
func ErrOrgNotFound() *Error { return Errorf(CodeNotFound, "no such organization") }
