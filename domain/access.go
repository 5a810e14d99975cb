package domain

// Access is what a member may do: the contract's role, of which members who may only look have a
// name of their own.
type Access string

// The accesses.
const (
	AccessOwner  Access = Access(RoleOwner)
	AccessAdmin  Access = Access(RoleAdmin)
	AccessMember Access = Access(RoleMember)
	// AccessViewer is the access of a member, of RoleMember, who may only look.
	AccessViewer Access = "viewer"
)

// AccessOf returns the access of a role. viewOnly is for RoleMember alone.
func AccessOf(role Role, viewOnly bool) Access {
	if viewOnly && role == RoleMember {
		return AccessViewer
	}
	return Access(role)
}

// Role returns the role, and whether a member of it may only look.
func (a Access) Role() (role Role, viewOnly bool) {
	if a == AccessViewer {
		return RoleMember, true
	}
	return Role(a), false
}

// ParseAccess returns the access of that name. The error is an invalid_request that names the field
// and what can be given.
func ParseAccess(field, s string) (Access, error) {
	switch access := Access(s); access {
	case AccessOwner, AccessAdmin, AccessMember, AccessViewer:
		return access, nil
	}
	return "", Errorf(
		CodeInvalidRequest, "%s: must be %s, %s or %s, not %q", field, AccessAdmin, AccessMember,
		AccessViewer, s,
	)
}

// Access returns what the member may do.
func (m OrgMember) Access() Access { return AccessOf(m.Role, m.ViewOnly) }

// Access returns what the person may do after accepting.
func (i OrgInvitation) Access() Access { return AccessOf(i.Role, i.ViewOnly) }
