package httpapi

import (
	"slices"

	"hubcloud/domain"
)

// access is what a route demands of its callers, and what its requests are counted on.
type access int

const (
	// forAnyone demands nothing and counts nothing.
	forAnyone access = iota
	// forAddress counts requests by the client's address.
	forAddress
	// forProbe counts requests by the client's address, apart from others: balancers must not lose
	// a replica because of what they forward.
	forProbe
	// forKey demands an API key and counts requests by key.
	forKey
)

// route is one row of the routing table.
type route struct {
	method  string
	pattern string
	access  access
	// scope is the scope that the key must have; "" demands none.
	scope  domain.Scope
	handle func(*request) error

	// query holds the names of the query parameters that handle reads with request.readQuery.
	query []string
	// readsBody reports that handle reads the body. For other routes it is discarded first.
	readsBody bool
	// asksHub reports that handle calls a hub, which may take longer.
	asksHub bool
	// longLived reports that the request may last as long as the client wants.
	longLived bool
	// quiet reports that requests are logged at debug level only.
	quiet bool

	api     *api
	metrics *routeMetrics
}

// option marks a route of the table.
type option func(*route)

func readsBody(rt *route) { rt.readsBody = true }
func asksHub(rt *route)   { rt.asksHub = true }
func longLived(rt *route) { rt.longLived = true }

// takes sets the names of the query parameters of a route.
func takes(names ...string) option { return func(rt *route) { rt.query = names } }

// keyRoute returns a route for API keys that have the scope.
func keyRoute(
	method, pattern string, scope domain.Scope, handle func(*request) error, options ...option,
) *route {
	rt := &route{method: method, pattern: pattern, access: forKey, scope: scope, handle: handle}
	for _, set := range options {
		set(rt)
	}
	return rt
}

// routes returns the routing table.
func (a *api) routes() []*route {
	return slices.Concat(
		a.siteRoutes(), a.hubRoutes(), a.deviceRoutes(), a.memberRoutes(), a.webhookRoutes(),
		a.credentialRoutes(), a.auditRoutes(), a.publicRoutes(), a.documentRoutes(), a.portalRoutes(),
	)
}

func (a *api) siteRoutes() []*route {
	const read, write = domain.ScopeSitesRead, domain.ScopeSitesWrite
	site := func(handle func(*request, string) error) func(*request) error {
		return onID("site_id", domain.ErrSiteNotFound, func(req *request, id string) error {
			return handle(req, req.key.Reach.Site(id))
		})
	}
	return []*route{
		keyRoute("GET", "/v1/sites", read, a.listSites, takes("limit", "starting_after")),
		keyRoute("POST", "/v1/sites", write, a.createSite, readsBody),
		keyRoute("GET", "/v1/sites/{site_id}", read, site(a.getSite)),
		keyRoute("PATCH", "/v1/sites/{site_id}", write, site(a.updateSite), readsBody),
	}
}

func (a *api) hubRoutes() []*route {
	const hub = "/v1/hubs/{hub_id}"
	const read, write, events = domain.ScopeHubsRead, domain.ScopeHubsWrite, domain.ScopeEventsRead
	return []*route{
		keyRoute("GET", "/v1/hubs", read, a.listHubs, takes("limit", "starting_after", "site_id")),
		keyRoute("POST", "/v1/hubs", write, a.addHub, readsBody),
		keyRoute("GET", hub, read, a.onHub(a.getHub)),
		keyRoute("PATCH", hub, write, a.onHub(a.updateHub), readsBody),
		keyRoute("POST", hub+"/reset-link", write, a.onHub(a.resetLink)),
		keyRoute("POST", hub+"/pairing", write, a.onHub(a.openPairing), readsBody, asksHub),
		keyRoute("DELETE", hub+"/pairing", write, a.onHub(a.closePairing), asksHub),
		keyRoute("POST", hub+"/removal", write, a.onHub(a.openRemoval), asksHub),
		keyRoute("DELETE", hub+"/removal", write, a.onHub(a.closeRemoval), asksHub),
		keyRoute(
			"GET", "/v1/events", events, a.readOrgEvents, longLived,
			takes(
				"after", "since", "last", "limit", "wait", "site_id", "hub_id", "type", "part",
			),
		),
		keyRoute(
			"GET", "/v1/events/stream", events, a.streamOrgEvents, longLived,
			takes(
				"after", "since", "last", "site_id", "hub_id", "type", "part", "positions",
				"caught_up", "snapshot",
			),
		),
		keyRoute("GET", "/v1/readers", events, a.listReaders, takes("limit", "starting_after")),
		keyRoute(
			"GET", hub+"/events", events, a.onHub(a.readEvents), longLived,
			takes("after", "since", "last", "limit", "wait"),
		),
		keyRoute(
			"GET", hub+"/events/stream", events, a.onHub(a.streamEvents), longLived,
			takes("after", "since", "last", "positions", "caught_up"),
		),
	}
}

func (a *api) deviceRoutes() []*route {
	const devices = "/v1/hubs/{hub_id}/devices"
	const device = devices + "/{device_id}"
	const read, write = domain.ScopeHubsRead, domain.ScopeHubsWrite
	return []*route{
		keyRoute(
			"GET", "/v1/state", read, a.listStates,
			takes(
				"limit", "starting_after", "site_id", "hub_id", "key", "value", "status",
				"available", "observed_before",
			),
		),
		keyRoute("GET", "/v1/attention", read, a.listAttention, takes("limit", "site_id", "hub_id")),
		keyRoute("GET", "/v1/hubs/{hub_id}/state", read, a.onHub(a.getPastState), takes("at", "starting_after")),
		keyRoute("GET", devices, read, a.onHub(a.listDevices), asksHub),
		keyRoute("GET", device, read, a.onDevice(a.getDevice), asksHub),
		keyRoute("PATCH", device, write, a.onDevice(a.updateDevice), readsBody, asksHub),
		keyRoute("DELETE", device, write, a.onDevice(a.forgetDevice), asksHub),
		keyRoute(
			"POST", "/v1/commands", domain.ScopeHubsCommand, a.sendCommands, readsBody, asksHub,
		),
		keyRoute("GET", "/v1/commands/{command_id}", domain.ScopeHubsCommand, a.getCommands),
		keyRoute(
			"POST", device+"/commands", domain.ScopeHubsCommand, a.onDevice(a.sendCommand), readsBody, asksHub,
		),
	}
}

func (a *api) memberRoutes() []*route {
	const read, write = domain.ScopeMembersRead, domain.ScopeMembersWrite
	const member, invitation = "/v1/members/{member_id}", "/v1/invitations/{invitation_id}"
	on := func(handle func(*request, string) error) func(*request) error {
		return onID("member_id", domain.ErrMemberNotFound, handle)
	}
	revoke := onID("invitation_id", domain.ErrInvitationNotFound, a.revokeInvitation)
	return []*route{
		keyRoute("GET", "/v1/members", read, a.listMembers, takes("limit", "starting_after")),
		keyRoute("GET", member, read, on(a.getMember)),
		keyRoute("PATCH", member, write, on(a.updateMember), readsBody),
		keyRoute("DELETE", member, write, on(a.removeMember)),
		keyRoute(
			"GET", "/v1/invitations", read, a.listInvitations, takes("limit", "starting_after"),
		),
		keyRoute("POST", "/v1/invitations", write, a.createInvitation, readsBody),
		keyRoute("DELETE", invitation, write, revoke),
	}
}

// publicRoutes returns the routes that need no API key.
func (a *api) publicRoutes() []*route {
	routes := []*route{{
		method: "POST", pattern: "/link/v1/certificates", access: forAddress, readsBody: true,
		handle: a.issueCertificate,
	}}
	for _, method := range []string{"GET", "HEAD"} {
		routes = append(
			routes, &route{method: method, pattern: "/healthz", access: forProbe, quiet: true, handle: a.health},
			&route{method: method, pattern: "/readyz", access: forProbe, quiet: true, handle: a.publicReadiness},
		)
	}
	return routes
}
