package domain

import (
	"fmt"
	"slices"
	"time"
)

// OrgState is an organization, folded from its events. The zero value is no organization.
type OrgState struct {
	ID        string
	Name      string
	CreatedAt time.Time
	// Members are in the order in which they joined. At least one is an owner, and no two have the
	// same address.
	Members []OrgMember
	// Invitations are the pending and the newest MaxExpiredInvitations expired ones, oldest first:
	// at most one of an address, and none of a member's.
	Invitations []OrgInvitation
	// InvitedAt has the times of the newest MaxInvitationsPerHour invitations, oldest first. It
	// includes invitations that were accepted or revoked since.
	InvitedAt []time.Time
	// Seen are the newest MaxSeenConditions conditions that members have seen, oldest first: at
	// most one occurrence of each condition.
	Seen []SeenCondition
	// Book is what the organization keeps of its events.
	Book Book
}

// OrgMember is a member in an organization's state.
type OrgMember struct {
	ID string
	// Email is the address as entered, Address its NormalizeEmail.
	Email    string
	Address  string
	Role     Role
	JoinedAt time.Time
	// Name is what the portal calls the member; "" for the address.
	Name string
	// ViewOnly is whether the member, of RoleMember, may only look.
	ViewOnly bool
	// FromGroups is whether the person's groups at the identity provider gave the membership.
	FromGroups bool
	// Accepted is the invitation that the person accepted; its ID is empty for the first owner.
	Accepted OrgInvitation
	// Mails are the mail preferences that the member has chosen; nil for none.
	Mails *MailPreferences
}

// Exists reports whether the organization exists.
func (s OrgState) Exists() bool { return s.ID != "" }

// OrgOf returns the organization of a fact of the aggregate org; false for other facts and for nil.
func OrgOf(fact Fact) (id string, ok bool) { return idOf(fact, "org.", "OrgID") }

// DecideCreateOrg creates an organization with its first owner. The caller has validated name and
// address.
func DecideCreateOrg(
	s OrgState, o Origin, orgID, name, ownerID, ownerEmail string,
) ([]Event, error) {
	if s.Exists() {
		return nil, fmt.Errorf("organization %s exists already", orgID)
	}
	return []Event{
		Record(o, OrgCreated{OrgID: orgID, Name: name}),
		Record(o, MemberAdded{OrgID: orgID, MemberID: ownerID, Email: ownerEmail, Role: RoleOwner}),
	}, nil
}

// DecideRenameOrg renames an organization; it returns no event if the name is the same. The caller
// has validated the name. It returns not_found for an organization that does not exist, and
// forbidden for an actor that may not rename it.
func DecideRenameOrg(s OrgState, o Origin, name string) ([]Event, error) {
	if !s.Exists() {
		return nil, ErrOrgNotFound()
	}
	if err := s.mayManage(o.Actor, RoleMember); err != nil {
		return nil, err
	}
	if s.Name == name {
		return nil, nil
	}
	return []Event{Record(o, OrgRenamed{OrgID: s.ID, Name: name})}, nil
}

// EvolveOrg folds an event into an organization's state. It does not change the lists of s.
func EvolveOrg(s OrgState, e Event) (OrgState, error) {
	fact, err := e.Fact()
	if err != nil {
		return s, err
	}
	switch f := fact.(type) {
	case OrgCreated:
		return OrgState{ID: f.OrgID, Name: f.Name, CreatedAt: e.At}, nil
	case OrgRenamed:
		s.Name = f.Name
	case MemberAdded:
		s.Members = append(slices.Clip(s.Members), OrgMember{
			ID: f.MemberID, Email: f.Email, Address: NormalizeEmail(f.Email), Role: f.Role,
			ViewOnly: f.ViewOnly, JoinedAt: e.At, FromGroups: f.FromGroups,
		})
	case MemberRoleChanged:
		s = s.withMember(f.MemberID, func(m *OrgMember) {
			m.Role, m.ViewOnly = f.Role, f.ViewOnly
		})
	case MemberNamed:
		s = s.withMember(f.MemberID, func(m *OrgMember) { m.Name = f.Name })
	case MemberRemoved:
		s.Members = slices.DeleteFunc(
			slices.Clone(s.Members), func(m OrgMember) bool { return m.ID == f.MemberID },
		)
	case MemberInvited:
		return s.withInvitation(e, f)
	case MemberInvitationRestored:
		if len(f.TokenHash) != 32 {
			return s, misplaced(e, "org")
		}
		s.Invitations = append(slices.Clip(s.Invitations), OrgInvitation{
			ID: f.InvitationID, Email: f.Email, Address: NormalizeEmail(f.Email), Role: f.Role,
			CreatedAt: f.CreatedAt, ExpiresAt: f.ExpiresAt, TokenHash: [32]byte(f.TokenHash),
			ViewOnly: f.ViewOnly,
		})
	case MemberInvitationRevoked:
		s.Invitations = withoutInvitation(s.Invitations, f.InvitationID)
	case MemberInvitationAccepted:
		return s.withAcceptance(f), nil
	case ConditionSeen:
		return s.withSeen(e, f), nil
	case ConditionUnseen:
		return s.withUnseen(f), nil
	case MailPreferencesSet:
		return s.withMailPreferences(f), nil
	case BookSet:
		s.Book = s.Book.With(f.BookSettings, e.At)
	default:
		return s, misplaced(e, "organization")
	}
	return s, nil
}

// ErrOrgNotFound returns the not_found error for an organization.
func ErrOrgNotFound() *Error { return Errorf(CodeNotFound, "no such organization") }
