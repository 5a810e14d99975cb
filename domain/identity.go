package domain

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
)

// Identity is a person at an identity provider. An address may be given to another person; an
// identity never is.
type Identity struct {
	Issuer  string `json:"issuer"`
	Subject string `json:"subject"`
}

// Key returns the key under which the identity's account is found, in the form of AccountKey. It is
// no address's key, since an address has no line break.
func (i Identity) Key() string {
	sum := sha256.Sum256([]byte("identity\n" + i.Issuer + "\n" + i.Subject))
	return hex.EncodeToString(sum[:])
}

// Exceeds reports whether the access allows more than another one, which may be "".
func (a Access) Exceeds(other Access) bool {
	order := []Access{"", AccessViewer, AccessMember, AccessAdmin, AccessOwner}
	return slices.Index(order, a) > slices.Index(order, other)
}

// ProvenPerson is a person whom the identity provider has signed in.
type ProvenPerson struct {
	Identity Identity
	// Email is an address that the provider has verified.
	Email string
	// Access is what the person's groups at the provider allow, by the organization's id.
	Access map[string]Access
}

// DecideBindIdentity binds an account to an identity; it returns no event if it is bound to it. An
// account that is bound to another identity of the same issuer is forbidden, unless replace is set.
func DecideBindIdentity(s AccountState, o Origin, i Identity, replace bool) ([]Event, error) {
	switch {
	case s.Identity == i:
		return nil, nil
	case s.Identity.Issuer == i.Issuer && !replace:
		return nil, Errorf(
			CodeForbidden, "this address belongs to another person here; ask an owner of your "+
				"organization to remove that member first",
		)
	}
	return []Event{Record(o, identityBound(s, i))}, nil
}

// DecideFindByIdentity makes an account be found by the identity that it is bound to. s is what is
// stored under the identity's key.
func DecideFindByIdentity(s AccountState, o Origin, account AccountState) []Event {
	if s.ID == account.ID {
		return nil
	}
	return []Event{Record(o, identityBound(account, account.Identity))}
}

func identityBound(s AccountState, i Identity) AccountIdentityBound {
	return AccountIdentityBound{AccountID: s.ID, Email: s.Email, Identity: i}
}

// DecideGroupAccess makes the membership of a person what the person's groups at the identity
// provider allow: access, "" for nothing. It changes only memberships that groups gave, and never
// the last owner. memberID is the id of a new member. It returns not_found for access in an
// organization that does not exist.
func DecideGroupAccess(
	s OrgState, o Origin, memberID, email string, access Access,
) ([]Event, error) {
	address := NormalizeEmail(email)
	member, found := s.member(func(m OrgMember) bool { return m.Address == address })
	switch {
	case !s.Exists() && access != "":
		return nil, ErrOrgNotFound()
	case !found && access == "" || found && (!member.FromGroups || s.isLastOwner(member)):
		return nil, nil
	case access == "":
		return []Event{Record(o, MemberRemoved{OrgID: s.ID, MemberID: member.ID})}, nil
	case found:
		return DecideChangeAccess(s, o, member.ID, access)
	}
	var events []Event
	for _, i := range s.Invitations { // not needed any more
		if i.Address == address {
			events = append(
				events, Record(o, MemberInvitationRevoked{OrgID: s.ID, InvitationID: i.ID}),
			)
		}
	}
	role, viewOnly := access.Role()
	return append(events, Record(o, MemberAdded{
		OrgID: s.ID, MemberID: memberID, Email: email, Role: role, ViewOnly: viewOnly,
		FromGroups: true,
	})), nil
}
