package portal

import (
	"net/http"
	"net/netip"
	"slices"
	"time"
)

// Route is one page or action, for the API's router.
type Route struct {
	// Method is the HTTP method; Pattern is the path, with {names} for http.Request.PathValue.
	Method, Pattern string
	// LongLived marks a request that lasts for as long as the client reads.
	LongLived bool
	// AsksHub marks a request that waits for a hub.
	AsksHub bool
	// Handle answers a request.
	Handle func(w http.ResponseWriter, r *http.Request, info RequestInfo)
}

// RequestInfo is what the router knows of a request.
type RequestInfo struct {
	RequestID string
	// At is when the request began.
	At time.Time
	// Network is the block of addresses that the request came from. Limits count per block.
	Network netip.Prefix
	// RecordError records why the service failed to answer, for the request's log line. It may be
	// nil.
	RecordError func(error)
}

// Routes returns every route under /portal. HEAD is allowed wherever GET is, except on long-lived
// requests.
func (p *Portal) Routes() []Route {
	all := slices.Concat(p.accountRoutes(), p.organizationRoutes(), p.hubRoutes())
	for _, route := range all {
		if route.Method == http.MethodGet && !route.LongLived {
			route.Method = http.MethodHead
			all = append(all, route)
		}
	}
	return all
}

// accountRoutes are the routes that need no organization: signing in and out, invitations, the list
// of organizations and the files of pages.
func (p *Portal) accountRoutes() []Route {
	return []Route{
		{Method: "GET", Pattern: "/portal", Handle: p.public((*request).home)},
		{Method: "GET", Pattern: "/portal/", Handle: p.public((*request).home)},
		{Method: "GET", Pattern: "/portal/assets/{name}", Handle: p.asset},
		{
			Method:  "GET",
			Pattern: "/portal/invitations/{token}",
			Handle:  p.public((*request).acceptInvitation),
		},
		{Method: "GET", Pattern: "/portal/sign-in", Handle: p.public((*request).signInPage)},
		{Method: "POST", Pattern: "/portal/sign-in", Handle: p.public((*request).requestLink)},
		{Method: "GET", Pattern: "/portal/sign-in/{token}", Handle: p.public((*request).openLink)},
		{Method: "POST", Pattern: "/portal/sign-in/{token}", Handle: p.public((*request).useLink)},
		{
			Method:  "GET",
			Pattern: "/portal/*",
			Handle:  p.public(func(*request) error { return errPageNotFound }),
		},
		{Method: "POST", Pattern: "/portal/sign-out", Handle: p.signedIn((*request).signOut)},
		{
			Method:  "GET",
			Pattern: "/portal/organizations",
			Handle:  p.signedIn((*request).organizations),
		},
		{
			Method:  "POST",
			Pattern: "/portal/organizations",
			Handle:  p.signedIn((*request).createOrganization),
		},
		{
			Method:  "GET",
			Pattern: "/portal/organizations/new",
			Handle:  p.signedIn((*request).newOrganization),
		},
	}
}

// organizationRoutes are the management pages of an organization.
func (p *Portal) organizationRoutes() []Route {
	return []Route{
		{Method: "GET", Pattern: "/portal/{org}/members", Handle: p.member((*request).members)},
		{
			Method:  "POST",
			Pattern: "/portal/{org}/members/{member}/role",
			Handle:  p.manager((*request).changeRole),
		},
		{
			Method:  "GET",
			Pattern: "/portal/{org}/members/{member}/role",
			Handle:  p.member(redirectToForm("members")),
		},
		{
			Method:  "GET",
			Pattern: "/portal/{org}/members/{member}/remove",
			Handle:  p.member((*request).confirmMemberRemoval),
		},
		{
			Method:  "POST",
			Pattern: "/portal/{org}/members/{member}/remove",
			Handle:  p.member((*request).removeMember),
		},
		{
			Method:  "POST",
			Pattern: "/portal/{org}/invitations",
			Handle:  p.manager((*request).invite),
		},
		{
			Method:  "GET",
			Pattern: "/portal/{org}/invitations",
			Handle:  p.member(redirectToForm("members")),
		},
		{
			Method:  "POST",
			Pattern: "/portal/{org}/invitations/{invitation}/revoke",
			Handle:  p.manager((*request).revokeInvitation),
		},

		{Method: "GET", Pattern: "/portal/{org}/keys", Handle: p.member((*request).keys)},
		{Method: "POST", Pattern: "/portal/{org}/keys", Handle: p.manager((*request).createKey)},
		{
			Method:  "GET",
			Pattern: "/portal/{org}/keys/{key}/revoke",
			Handle:  p.manager((*request).confirmKeyRevocation),
		},
		{
			Method:  "POST",
			Pattern: "/portal/{org}/keys/{key}/revoke",
			Handle:  p.manager((*request).revokeKey),
		},

		{Method: "GET", Pattern: "/portal/{org}/sites", Handle: p.member((*request).sites)},
		{Method: "POST", Pattern: "/portal/{org}/sites", Handle: p.manager((*request).createSite)},
		{
			Method:  "POST",
			Pattern: "/portal/{org}/sites/{site}/name",
			Handle:  p.manager((*request).renameSite),
		},
		{
			Method:  "GET",
			Pattern: "/portal/{org}/sites/{site}/name",
			Handle:  p.member(redirectToForm("sites")),
		},
		{Method: "POST", Pattern: "/portal/{org}/sites/hubs", Handle: p.manager((*request).addHub)},
		{
			Method:  "GET",
			Pattern: "/portal/{org}/sites/hubs",
			Handle:  p.member(redirectToForm("sites")),
		},

		{Method: "GET", Pattern: "/portal/{org}/activity", Handle: p.member((*request).activity)},
		{
			Method:  "GET",
			Pattern: "/portal/{org}/activity/commands",
			Handle:  p.member((*request).commandLog),
		},
	}
}

// redirectToForm leads to the page that a form is on. Its own address is in the browser's bar after
// it was refused, and is loaded again from there.
func redirectToForm(page string) handler {
	return func(req *request) error {
		req.redirectInOrg(page+req.listQuery(), "")
		return nil
	}
}

func (p *Portal) asset(w http.ResponseWriter, r *http.Request, _ RequestInfo) {
	p.assets.serve(w, r, r.PathValue("name"))
}
