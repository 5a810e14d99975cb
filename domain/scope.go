package domain

import (
	"slices"
	"strings"
)

// Scope is a permission of an API key.
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

// The scopes beyond the contract's.
const (
	ScopeWebhooksRead  Scope = "webhooks:read"
	ScopeWebhooksWrite Scope = "webhooks:write"
	ScopeAuditRead     Scope = "audit:read"
	// The scopes of door codes, which the API calls credentials, as the contract's events do.
	ScopeCredentialsRead  Scope = "credentials:read"
	ScopeCredentialsWrite Scope = "credentials:write"
)

// AllScopes returns all scopes, the contract's in its order first.
func AllScopes() []Scope {
	return []Scope{
		ScopeSitesRead, ScopeSitesWrite, ScopeHubsRead, ScopeHubsWrite, ScopeHubsCommand,
		ScopeEventsRead, ScopeMembersRead, ScopeMembersWrite, ScopeWebhooksRead,
		ScopeWebhooksWrite, ScopeAuditRead, ScopeCredentialsRead, ScopeCredentialsWrite,
	}
}

// OfSites reports whether a key that is limited to sites may have the scope: whoever has it reaches
// nothing but sites, their hubs, and what belongs to these.
func (s Scope) OfSites() bool {
	switch s {
	case ScopeSitesRead, ScopeSitesWrite, ScopeHubsRead, ScopeHubsWrite, ScopeHubsCommand,
		ScopeEventsRead, ScopeWebhooksRead, ScopeWebhooksWrite, ScopeCredentialsRead,
		ScopeCredentialsWrite:
		return true
	default:
		return false
	}
}

// ParseScope returns the scope of that name. The error is an invalid_request that names all scopes.
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
