package domain

import "slices"

// Role is the role of a member of an organization.
type Role string

// The roles of the contract.
const (
	RoleOwner  Role = "owner"
	RoleAdmin  Role = "admin"
	RoleMember Role = "member"
)

// ParseRole returns the role of that name. The error is an invalid_request that names the field and
// the allowed roles.
func ParseRole(field, s string) (Role, error) {
	switch role := Role(s); role {
	case RoleOwner, RoleAdmin, RoleMember:
		return role, nil
	}
	return "", Errorf(
		CodeInvalidRequest, "%s: must be %s or %s, not %q", field, RoleAdmin, RoleMember, s,
	)
}

// View returns the member as readers see it.
func (m OrgMember) View() Member {
	return Member{ID: m.ID, Email: m.Email, Role: m.Role, JoinedAt: m.JoinedAt}
}

// Member returns a member by its id.
func (s OrgState) Member(id string) (OrgMember, bool) {
	return s.member(func(m OrgMember) bool { return m.ID == id })
}

func (s OrgState) member(is func(OrgMember) bool) (OrgMember, bool) {
	i := slices.IndexFunc(s.Members, is)
	if i < 0 {
		return OrgMember{}, false
	}
	return s.Members[i], true
}

// DecideChangeRole changes a member's role; it returns no event if the role is the same. It returns
// forbidden for an actor that may not change the role and for a change of the last owner, and
// not_found for an unknown member.
func DecideChangeRole(s OrgState, o Origin, memberID string, role Role) ([]Event, error) {
	member, _ := s.Member(memberID)
	return DecideChangeAccess(s, o, memberID, AccessOf(role, role == member.Role && member.ViewOnly))
}

// DecideChangeAccess is DecideChangeRole that also decides whether the member may only look.
func DecideChangeAccess(s OrgState, o Origin, memberID string, access Access) ([]Event, error) {
	role, viewOnly := access.Role()
	if _, err := ParseRole("role", string(role)); err != nil {
		return nil, err
	}
	if err := s.mayManage(o.Actor, role); err != nil {
		return nil, err
	}
	member, err := s.managed(o.Actor, memberID)
	if err != nil || member.Access() == access {
		return nil, err
	}
	if s.isLastOwner(member) {
		return nil, errLastOwner()
	}
	return []Event{Record(o, MemberRoleChanged{
		OrgID: s.ID, MemberID: member.ID, Role: role, ViewOnly: viewOnly,
	})}, nil
}

// DecideRemoveMember ends a membership. Members may end their own. It returns forbidden for an
// actor that may not end the membership and for the removal of the last owner, and not_found for an
// unknown member.
func DecideRemoveMember(s OrgState, o Origin, memberID string) ([]Event, error) {
	member, ok := s.Member(memberID)
	if leaves := ok && o.Actor == (Actor{Kind: ActorMember, ID: memberID}); !leaves {
		var err error
		if member, err = s.managed(o.Actor, memberID); err != nil {
			return nil, err
		}
	}
	if s.isLastOwner(member) {
		return nil, errLastOwner()
	}
	return []Event{Record(o, MemberRemoved{OrgID: s.ID, MemberID: member.ID})}, nil
}

// managed returns the member, forbidden if the actor may not change it, and not_found if the
// organization has no such member.
func (s OrgState) managed(actor Actor, memberID string) (OrgMember, error) {
	if err := s.mayManage(actor, RoleMember); err != nil {
		return OrgMember{}, err
	}
	member, ok := s.Member(memberID)
	if !ok {
		return OrgMember{}, ErrMemberNotFound()
	}
	return member, s.mayManage(actor, member.Role)
}

// mayManage returns a forbidden error unless the actor may create, change and remove members with
// that role. Operators, the service and owners may manage all members; API keys and admins may
// manage all but owners.
func (s OrgState) mayManage(actor Actor, role Role) error {
	switch actor.Kind {
	case ActorOperator, ActorService:
		return nil
	case ActorKey:
		if role == RoleOwner {
			return Errorf(
				CodeForbidden,
				"role: an API key cannot change, remove or create an owner; an owner can do so in "+
					"the portal",
			)
		}
		return nil
	case ActorMember:
		switch member, _ := s.Member(actor.ID); {
		case member.Role == RoleOwner, member.Role == RoleAdmin && role != RoleOwner:
			return nil
		case member.Role == RoleAdmin:
			return Errorf(CodeForbidden, "only an owner can change, remove or create an owner")
		}
	}
	return Errorf(CodeForbidden, "only owners and admins can do this")
}

func (s OrgState) isLastOwner(member OrgMember) bool {
	return member.Role == RoleOwner &&
		!slices.ContainsFunc(
			s.Members, func(m OrgMember) bool { return m.Role == RoleOwner && m.ID != member.ID },
		)
}

// ErrMemberNotFound returns the not_found error for a member.
func ErrMemberNotFound() *Error { return Errorf(CodeNotFound, "no such member") }

func errLastOwner() *Error {
	return Errorf(
		CodeForbidden,
		"the last owner cannot be changed or removed; make another member an owner first",
	)
}
