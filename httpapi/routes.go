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
		a.siteRoutes(), a.hubRoutes(), a.deviceRoutes(), a.memberRoutes(), a.publicRoutes(),
		a.documentRoutes(), a.portalRoutes(),
	)
}

func (a *api) siteRoutes() []*route {
	const read, write = domain.ScopeSitesRead, domain.ScopeSitesWrite
	return []*route{
		keyRoute("GET", "/v1/sites", read, a.listSites),
		keyRoute("POST", "/v1/sites", write, a.createSite, readsBody),
		keyRoute("GET", "/v1/sites/{site_id}", read, a.getSite),
		keyRoute("PATCH", "/v1/sites/{site_id}", write, a.updateSite, readsBody),
	}
}

func (a *api) hubRoutes() []*route {
	const hub = "/v1/hubs/{hub_id}"
	const read, write, events = domain.ScopeHubsRead, domain.ScopeHubsWrite, domain.ScopeEventsRead
	return []*route{
		keyRoute("GET", "/v1/hubs", read, a.listHubs),
		keyRoute("POST", "/v1/hubs", write, a.addHub, readsBody),
		keyRoute("GET", hub, read, a.getHub),
		keyRoute("PATCH", hub, write, a.updateHub, readsBody),
		keyRoute("POST", hub+"/reset-link", write, a.resetLink),
		keyRoute("POST", hub+"/pairing", write, a.openPairing, readsBody, asksHub),
		keyRoute("DELETE", hub+"/pairing", write, a.closePairing, asksHub),
		keyRoute("POST", hub+"/removal", write, a.openRemoval, asksHub),
		keyRoute("DELETE", hub+"/removal", write, a.closeRemoval, asksHub),
		keyRoute("GET", "/v1/events", events, a.readOrgEvents, longLived),
		keyRoute("GET", "/v1/events/stream", events, a.streamOrgEvents, longLived),
		keyRoute("GET", "/v1/readers", events, a.listReaders),
		keyRoute("GET", hub+"/events", events, a.readEvents, longLived),
		keyRoute("GET", hub+"/events/stream", events, a.streamEvents, longLived),
	}
}

func (a *api) deviceRoutes() []*route {
	const devices = "/v1/hubs/{hub_id}/devices"
	const device = devices + "/{device_id}"
	const read, write = domain.ScopeHubsRead, domain.ScopeHubsWrite
	return []*route{
		keyRoute("GET", "/v1/state", read, a.listStates),
		keyRoute("GET", "/v1/hubs/{hub_id}/state", read, a.getPastState),
		keyRoute("GET", devices, read, a.listDevices, asksHub),
		keyRoute("GET", device, read, a.getDevice, asksHub),
		keyRoute("PATCH", device, write, a.updateDevice, readsBody, asksHub),
		keyRoute("DELETE", device, write, a.forgetDevice, asksHub),
		keyRoute(
			"POST", device+"/commands", domain.ScopeHubsCommand, a.sendCommand, readsBody, asksHub,
		),
	}
}

func (a *api) memberRoutes() []*route {
	const read, write = domain.ScopeMembersRead, domain.ScopeMembersWrite
	return []*route{
		keyRoute("GET", "/v1/members", read, a.listMembers),
		keyRoute("GET", "/v1/members/{member_id}", read, a.getMember),
		keyRoute("PATCH", "/v1/members/{member_id}", write, a.updateMember, readsBody),
		keyRoute("DELETE", "/v1/members/{member_id}", write, a.removeMember),
		keyRoute("GET", "/v1/invitations", read, a.listInvitations),
		keyRoute("POST", "/v1/invitations", write, a.createInvitation, readsBody),
		keyRoute("DELETE", "/v1/invitations/{invitation_id}", write, a.revokeInvitation),
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
			routes, &route{method: method, pattern: "/healthz", quiet: true, handle: a.health},
			&route{method: method, pattern: "/readyz", quiet: true, handle: a.publicReadiness},
		)
	}
	return routes
}
