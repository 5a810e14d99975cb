package httpapi

import (
	"slices"

	"hubcloud/domain"
)

// access is what a route asks of its callers before anything else.
type access int

const (
	// forAnyone asks nothing and counts nothing.
	forAnyone access = iota
	// forAddress counts on the client's address.
	forAddress
	// forKey asks for an API key and counts on it.
	forKey
)

// route is one line of the table: a method and a path, who may use it, and what answers.
type route struct {
	method  string
	pattern string
	access  access
	// scope is the one that the key must have; "" asks for none.
	scope domain.Scope
	// takesBody says that handle reads the body; otherwise it is read and ignored before.
	takesBody bool
	// held says that the request may last as long as its client wants; otherwise it has
	// managementTimeout.
	held bool
	// live says that a hub is asked meanwhile, which may make it longer.
	live bool
	// quiet says that its log lines are for debugging only: machines ask every few seconds.
	quiet  bool
	handle func(*exchange) error

	api   *api
	count *routeMetrics
}

// routes is everything that is served.
func (a *api) routes() []*route {
	return slices.Concat([]*route{
		{
			method:  "GET",
			pattern: "/v1/sites",
			access:  forKey,
			scope:   domain.ScopeSitesRead,
			handle:  a.listSites,
		},
		{
			method:    "POST",
			pattern:   "/v1/sites",
			access:    forKey,
			scope:     domain.ScopeSitesWrite,
			takesBody: true,
			handle:    a.createSite,
		},
		{
			method:  "GET",
			pattern: "/v1/sites/{site_id}",
			access:  forKey,
			scope:   domain.ScopeSitesRead,
			handle:  a.getSite,
		},
		{
			method:    "PATCH",
			pattern:   "/v1/sites/{site_id}",
			access:    forKey,
			scope:     domain.ScopeSitesWrite,
			takesBody: true,
			handle:    a.updateSite,
		},

		{
			method:  "GET",
			pattern: "/v1/hubs",
			access:  forKey,
			scope:   domain.ScopeHubsRead,
			handle:  a.listHubs,
		},
		{
			method:    "POST",
			pattern:   "/v1/hubs",
			access:    forKey,
			scope:     domain.ScopeHubsWrite,
			takesBody: true,
			handle:    a.addHub,
		},
		{
			method:  "GET",
			pattern: "/v1/hubs/{hub_id}",
			access:  forKey,
			scope:   domain.ScopeHubsRead,
			handle:  a.getHub,
		},
		{
			method:    "PATCH",
			pattern:   "/v1/hubs/{hub_id}",
			access:    forKey,
			scope:     domain.ScopeHubsWrite,
			takesBody: true,
			handle:    a.updateHub,
		},
		{
			method:  "POST",
			pattern: "/v1/hubs/{hub_id}/reset-link",
			access:  forKey,
			scope:   domain.ScopeHubsWrite,
			handle:  a.resetLink,
		},

		{
			method:  "GET",
			pattern: "/v1/hubs/{hub_id}/devices",
			access:  forKey,
			scope:   domain.ScopeHubsRead,
			live:    true,
			handle:  a.listDevices,
		},
		{
			method:  "GET",
			pattern: "/v1/hubs/{hub_id}/devices/{device_id}",
			access:  forKey,
			scope:   domain.ScopeHubsRead,
			live:    true,
			handle:  a.getDevice,
		},
		{
			method:    "PATCH",
			pattern:   "/v1/hubs/{hub_id}/devices/{device_id}",
			access:    forKey,
			scope:     domain.ScopeHubsWrite,
			takesBody: true,
			live:      true,
			handle:    a.updateDevice,
		},
		{
			method:  "DELETE",
			pattern: "/v1/hubs/{hub_id}/devices/{device_id}",
			access:  forKey,
			scope:   domain.ScopeHubsWrite,
			live:    true,
			handle:  a.forgetDevice,
		},
		{
			method:    "POST",
			pattern:   "/v1/hubs/{hub_id}/pairing",
			access:    forKey,
			scope:     domain.ScopeHubsWrite,
			takesBody: true,
			live:      true,
			handle:    a.openPairing,
		},
		{
			method:  "DELETE",
			pattern: "/v1/hubs/{hub_id}/pairing",
			access:  forKey,
			scope:   domain.ScopeHubsWrite,
			live:    true,
			handle:  a.closePairing,
		},
		{
			method:  "POST",
			pattern: "/v1/hubs/{hub_id}/removal",
			access:  forKey,
			scope:   domain.ScopeHubsWrite,
			live:    true,
			handle:  a.openRemoval,
		},
		{
			method:  "DELETE",
			pattern: "/v1/hubs/{hub_id}/removal",
			access:  forKey,
			scope:   domain.ScopeHubsWrite,
			live:    true,
			handle:  a.closeRemoval,
		},
		{
			method:    "POST",
			pattern:   "/v1/hubs/{hub_id}/devices/{device_id}/commands",
			access:    forKey,
			scope:     domain.ScopeHubsCommand,
			takesBody: true,
			live:      true,
			handle:    a.sendCommand,
		},

		{
			method:  "GET",
			pattern: "/v1/hubs/{hub_id}/events",
			access:  forKey,
			scope:   domain.ScopeEventsRead,
			held:    true,
			handle:  a.readEvents,
		},
		{
			method:  "GET",
			pattern: "/v1/hubs/{hub_id}/events/stream",
			access:  forKey,
			scope:   domain.ScopeEventsRead,
			held:    true,
			handle:  a.streamEvents,
		},

		{
			method:  "GET",
			pattern: "/v1/members",
			access:  forKey,
			scope:   domain.ScopeMembersRead,
			handle:  a.listMembers,
		},
		{
			method:  "GET",
			pattern: "/v1/members/{member_id}",
			access:  forKey,
			scope:   domain.ScopeMembersRead,
			handle:  a.getMember,
		},
		{
			method:    "PATCH",
			pattern:   "/v1/members/{member_id}",
			access:    forKey,
			scope:     domain.ScopeMembersWrite,
			takesBody: true,
			handle:    a.updateMember,
		},
		{
			method:  "DELETE",
			pattern: "/v1/members/{member_id}",
			access:  forKey,
			scope:   domain.ScopeMembersWrite,
			handle:  a.removeMember,
		},
		{
			method:  "GET",
			pattern: "/v1/invitations",
			access:  forKey,
			scope:   domain.ScopeMembersRead,
			handle:  a.listInvitations,
		},
		{
			method:    "POST",
			pattern:   "/v1/invitations",
			access:    forKey,
			scope:     domain.ScopeMembersWrite,
			takesBody: true,
			handle:    a.createInvitation,
		},
		{
			method:  "DELETE",
			pattern: "/v1/invitations/{invitation_id}",
			access:  forKey,
			scope:   domain.ScopeMembersWrite,
			handle:  a.revokeInvitation,
		},

		{
			method:    "POST",
			pattern:   "/link/v1/certificates",
			access:    forAddress,
			takesBody: true,
			handle:    a.issueCertificate,
		},

		{method: "GET", pattern: "/healthz", access: forAnyone, quiet: true, handle: a.health},
		{method: "HEAD", pattern: "/healthz", access: forAnyone, quiet: true, handle: a.health},
		{
			method:  "GET",
			pattern: "/readyz",
			access:  forAnyone,
			quiet:   true,
			handle:  a.publicReadiness,
		},
		{
			method:  "HEAD",
			pattern: "/readyz",
			access:  forAnyone,
			quiet:   true,
			handle:  a.publicReadiness,
		},
	}, a.documentRoutes(), a.portalRoutes())
}
