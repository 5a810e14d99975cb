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
	Handle routeHandler
}

// routeHandler answers a request.
type routeHandler = func(w http.ResponseWriter, r *http.Request, info RequestInfo)

// RequestInfo is what the router knows of a request.
type RequestInfo struct {
	RequestID string
	// At is when the request began.
	At time.Time
	// Address is the IP address that the request came from, and Network the block of addresses that
	// limits count as one client.
	Address string
	Network netip.Prefix
	// RecordError records why the service failed to answer, for the request's log line. It may be
	// nil.
	RecordError func(error)
}

func get(pattern string, handle routeHandler) Route {
	return Route{Method: http.MethodGet, Pattern: pattern, Handle: handle}
}

func post(pattern string, handle routeHandler) Route {
	return Route{Method: http.MethodPost, Pattern: pattern, Handle: handle}
}

func (r Route) askingHub() Route {
	r.AsksHub = true
	return r
}

func (r Route) longLived() Route {
	r.LongLived = true
	return r
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
		get("/portal", p.public((*request).home)),
		get("/portal/", p.public((*request).home)),
		get("/portal/assets/{name}", p.asset),
		get("/portal/invitations/{token}", p.public((*request).acceptInvitation)),
		post("/portal/invitations/{token}", p.public((*request).signInByInvitation)),
		get("/portal/oidc", p.public((*request).beginAtProvider)),
		get("/portal/oidc/callback", p.public((*request).returnFromProvider)),
		get("/portal/sign-in", p.public((*request).signInPage)),
		post("/portal/sign-in", p.public((*request).requestLink)),
		get("/portal/sign-in/{token}", p.public((*request).openLink)),
		post("/portal/sign-in/{token}", p.public((*request).useLink)),
		get("/portal/unsubscribe/{token}", p.public((*request).unsubscribePage)),
		post("/portal/unsubscribe/{token}", p.stopMails),
		get("/portal/*", p.public(func(*request) error { return errPageNotFound })),
		post("/portal/sign-out", p.signedIn((*request).signOut)),
		get("/portal/design", p.signedIn((*request).designHome)),
		get("/portal/organizations", p.signedIn((*request).organizations)),
		post("/portal/organizations", p.signedIn((*request).createOrganization)),
		get("/portal/organizations/new", p.signedIn((*request).newOrganization)),
	}
}

// organizationRoutes are the management pages of an organization.
func (p *Portal) organizationRoutes() []Route {
	return []Route{
		get("/portal/{org}/members", p.member((*request).members)),
		post("/portal/{org}/members/{member}/role", p.manager((*request).changeRole)),
		get("/portal/{org}/members/{member}/role", p.member(redirectToForm("members"))),
		get("/portal/{org}/members/{member}/remove", p.member((*request).confirmMemberRemoval)),
		post("/portal/{org}/members/{member}/remove", p.member((*request).removeMember)),
		post("/portal/{org}/invitations", p.manager((*request).invite)),
		get("/portal/{org}/invitations", p.member(redirectToForm("members"))),
		post(
			"/portal/{org}/invitations/{invitation}/revoke", p.manager((*request).revokeInvitation),
		),
		get(
			"/portal/{org}/invitations/{invitation}/revoke", p.member(redirectToForm("members")),
		),

		post("/portal/{org}/virtual-hub", p.manager((*request).addVirtualHub)),
		get("/portal/{org}/virtual-hub", p.member(redirectToForm("sites"))),
		get("/portal/{org}/keys", p.member((*request).keys)),
		post("/portal/{org}/keys", p.manager((*request).createKey)),
		get("/portal/{org}/keys/{key}", p.manager((*request).keyPage)),
		post("/portal/{org}/keys/{key}/limits", p.manager((*request).changeKey)),
		get("/portal/{org}/keys/{key}/limits", p.manager((*request).redirectToKey)),
		post("/portal/{org}/keys/{key}/rotate", p.manager((*request).rotateKey)),
		get("/portal/{org}/keys/{key}/rotate", p.manager((*request).redirectToKey)),
		get("/portal/{org}/keys/{key}/revoke", p.manager((*request).confirmKeyRevocation)),
		post("/portal/{org}/keys/{key}/revoke", p.manager((*request).revokeKey)),

		get("/portal/{org}/webhooks", p.member((*request).webhooks)),
		post("/portal/{org}/webhooks", p.manager((*request).createWebhook)),
		get("/portal/{org}/webhooks/{webhook}", p.member((*request).webhookPage)),
		post("/portal/{org}/webhooks/{webhook}/{action}", p.manager((*request).actOnWebhook)),
		get("/portal/{org}/webhooks/{webhook}/{action}", p.member((*request).redirectToWebhook)),

		get("/portal/{org}/codes", p.member((*request).codes)),
		post("/portal/{org}/codes", p.manager((*request).createCode)).askingHub(),
		post("/portal/{org}/codes/change", p.manager((*request).changeCode)),
		post("/portal/{org}/codes/revoke", p.manager((*request).revokeCode)),
		get("/portal/{org}/codes/{form}", p.member(redirectToForm("codes"))),

		get("/portal/{org}/readers", p.member((*request).readers)),
		get("/portal/{org}/help", p.member((*request).help)),

		get("/portal/{org}/sites", p.member((*request).sites)),
		post("/portal/{org}/sites", p.manager((*request).createSite)),
		post("/portal/{org}/sites/{site}/name", p.manager((*request).renameSite)),
		get("/portal/{org}/sites/{site}/name", p.member(redirectToForm("sites"))),
		post("/portal/{org}/sites/hubs", p.manager((*request).addHub)),
		get("/portal/{org}/sites/hubs", p.member(redirectToForm("sites"))),

		get("/portal/{org}/sites/{site}", p.member((*request).sitePage)),
		post("/portal/{org}/sites/{site}/rename", p.manager((*request).renameOnSitePage)),
		get("/portal/{org}/sites/{site}/rename", p.member((*request).redirectToSite)),
		get(
			"/portal/{org}/sites/{site}/actions/{action}", p.operator((*request).confirmGroupAction),
		).askingHub(),
		post(
			"/portal/{org}/sites/{site}/actions/{action}", p.operator((*request).runGroupAction),
		).askingHub(),

		get("/portal/{org}/devices", p.member((*request).findDevices)),
		get("/portal/{org}/devices.csv", p.member((*request).exportDevices)).longLived(),
		post("/portal/{org}/devices/room", p.manager((*request).placeDevices)),
		post("/portal/{org}/devices/action", p.operator((*request).actOnDevices)).askingHub(),
		get("/portal/{org}/devices/{form}", p.member(redirectToForm("devices"))),
		get("/portal/{org}/rooms", p.member((*request).rooms)),
		post("/portal/{org}/rooms", p.manager((*request).renameRoom)),
		get("/portal/{org}/design", p.member((*request).design)),
		get("/portal/{org}/search", p.member((*request).searchAll)),

		post("/portal/{org}/undo", p.member((*request).undo)),
		get("/portal/{org}/undo", p.member(redirectToForm(""))),

		get("/portal/{org}/settings", p.member((*request).settings)),
		post("/portal/{org}/settings/name", p.manager((*request).renameOrganization)),
		post("/portal/{org}/settings/own-name", p.member((*request).nameMember)),
		get("/portal/{org}/settings/own-name", p.member(redirectToForm("settings"))),
		get("/portal/{org}/settings/name", p.member(redirectToForm("settings"))),

		get("/portal/{org}/notifications", p.member((*request).notifications)),
		post("/portal/{org}/notifications", p.member((*request).chooseNotifications)),
		post("/portal/{org}/notifications/test", p.member((*request).sendTestMail)),
		get("/portal/{org}/notifications/test", p.member(redirectToForm("notifications"))),

		get("/portal/{org}/events", p.member((*request).orgEvents)),
		get("/portal/{org}/events.csv", p.member((*request).exportEvents)).longLived(),
		get("/portal/{org}/book", p.member((*request).book)),
		post("/portal/{org}/book", p.manager((*request).setBook)),
		get("/portal/{org}/book.csv", p.member((*request).exportBook)).longLived(),
		get("/portal/{org}/activity", p.member((*request).activity)),
		get("/portal/{org}/activity.csv", p.manager((*request).exportActivity)).longLived(),
		get("/portal/{org}/activity/commands", p.member((*request).commandLog)),
	}
}

// redirectToForm redirects to the page that a form is on. After a rejected form the form's own
// address is in the browser's address bar, and is loaded again from there.
func redirectToForm(page string) handler {
	return func(req *request) error {
		req.redirectInOrg(page+req.listQuery(), "")
		return nil
	}
}

func (p *Portal) asset(w http.ResponseWriter, r *http.Request, _ RequestInfo) {
	p.assets.serve(w, r, r.PathValue("name"))
}
