package domain

import (
	"slices"
	"strings"
)

// Scope is what an API key may do, as the contract names it.
type Scope string

// The scopes of the contract.
const (
	ScopeSitesRead    Scope = "sites:read"
	ScopeSitesWrite   Scope = "sites:write"
	ScopeHubsRead     Scope = "hubs:read"
	ScopeHubsWrite    Scope = "hubs:write"
	ScopeHubsCommand  Scope = "hubs:command"
	ScopeEventsRead   Scope = "events:read"
	ScopeMembersRead  Scope = "members:read"
	ScopeMembersWrite Scope = "members:write"
)

// AllScopes gives every scope, in the contract's order.
func AllScopes() []Scope {
	return []Scope{
		ScopeSitesRead, ScopeSitesWrite, ScopeHubsRead, ScopeHubsWrite, ScopeHubsCommand,
		ScopeEventsRead, ScopeMembersRead, ScopeMembersWrite,
	}
}

// ParseScope takes a scope by its name. The Error names the scopes that there are.
func ParseScope(s string) (Scope, error) {
	if scope := Scope(s); slices.Contains(AllScopes(), scope) {
		return scope, nil
	}
	return "", Errorf(CodeInvalidRequest, "scopes: must be among %s, not %q", scopeNames(), s)
}

func scopeNames() string {
	names := make([]string, 0, len(AllScopes()))
	for _, known := range AllScopes() {
		names = append(names, string(known))
	}
	return strings.Join(names, ", ")
}

// Role is what a member of an organization may do in the portal.
type Role string

// The roles of the contract.
const (
	RoleOwner  Role = "owner"
	RoleAdmin  Role = "admin"
	RoleMember Role = "member"
)
