package portal

import (
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
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
	// form is the page that a form with this address is on, nil if it is on the page with the same
	// address.
	form *string
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

// on names the page that the form is on, relative to the organization's. A GET of the form's address
// leads there: after a rejected form the form's own address is in the browser's address bar, and is
// loaded again from there.
func (r Route) on(page string) Route {
	r.form = &page
	return r
}

// Routes returns every route under /portal. HEAD is allowed wherever GET is, except on long-lived
// requests.
func (p *Portal) Routes() []Route {
	all := slices.Concat(p.accountRoutes(), p.organizationRoutes(), p.hubRoutes())
	for _, route := range all {
		if route.form != nil {
			all = append(all, get(route.Pattern, p.member(redirectToForm(*route.form))))
		}
	}
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
		get("/portal/*", p.public((*request).pageNotFound)),
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
		post("/portal/{org}/members/{member}/role", p.manager((*request).changeRole)).on("members"),
		get("/portal/{org}/members/{member}/remove", p.member((*request).confirmMemberRemoval)),
		post("/portal/{org}/members/{member}/remove", p.member((*request).removeMember)),
		post("/portal/{org}/invitations", p.manager((*request).invite)).on("members"),
		post(
			"/portal/{org}/invitations/{invitation}/revoke", p.manager((*request).revokeInvitation),
		).on("members"),

		post("/portal/{org}/virtual-hub", p.manager((*request).addVirtualHub)).on("sites"),
		get("/portal/{org}/keys", p.member((*request).keys)),
		post("/portal/{org}/keys", p.manager((*request).createKey)),
		get("/portal/{org}/keys/{key}", p.manager((*request).keyPage)),
		post("/portal/{org}/keys/{key}/limits", p.manager((*request).changeKey)).on("keys/{key}"),
		post("/portal/{org}/keys/{key}/rotate", p.manager((*request).rotateKey)).on("keys/{key}"),
		get("/portal/{org}/keys/{key}/revoke", p.manager((*request).confirmKeyRevocation)),
		post("/portal/{org}/keys/{key}/revoke", p.manager((*request).revokeKey)),

		get("/portal/{org}/webhooks", p.member((*request).webhooks)),
		post("/portal/{org}/webhooks", p.manager((*request).createWebhook)),
		get("/portal/{org}/webhooks/{webhook}", p.member((*request).webhookPage)),
		post(
			"/portal/{org}/webhooks/{webhook}/{action}", p.manager((*request).actOnWebhook),
		).on("webhooks/{webhook}"),

		get("/portal/{org}/codes", p.member((*request).codes)),
		post("/portal/{org}/codes", p.manager((*request).createCode)).askingHub(),
		post("/portal/{org}/codes/change", p.manager((*request).changeCode)).on("codes"),
		post("/portal/{org}/codes/revoke", p.manager((*request).revokeCode)).on("codes"),

		get("/portal/{org}/readers", p.member((*request).readers)),
		get("/portal/{org}/help", p.member((*request).help)),

		get("/portal/{org}/sites", p.member((*request).sites)),
		post("/portal/{org}/sites", p.manager((*request).createSite)),
		post("/portal/{org}/sites/{site}/name", p.manager((*request).renameSite)).on("sites"),
		post("/portal/{org}/sites/hubs", p.manager((*request).addHub)).on("sites"),

		get("/portal/{org}/sites/{site}", p.member((*request).sitePage)),
		post(
			"/portal/{org}/sites/{site}/rename", p.manager((*request).renameOnSitePage),
		).on("sites/{site}"),
		get(
			"/portal/{org}/sites/{site}/actions/{action}", p.operator((*request).confirmGroupAction),
		).askingHub(),
		post(
			"/portal/{org}/sites/{site}/actions/{action}", p.operator((*request).runGroupAction),
		).askingHub(),

		get("/portal/{org}/devices", p.member((*request).findDevices)),
		get("/portal/{org}/devices.csv", p.member(exclusive((*request).exportDevices))).longLived(),
		post("/portal/{org}/devices/room", p.manager((*request).placeDevices)).on("devices"),
		post("/portal/{org}/devices/action", p.operator((*request).actOnDevices)).askingHub().on("devices"),
		get("/portal/{org}/rooms", p.member((*request).rooms)),
		post("/portal/{org}/rooms", p.manager((*request).renameRoom)),
		get("/portal/{org}/design", p.member((*request).design)),
		get("/portal/{org}/search", p.member((*request).searchAll)),

		post("/portal/{org}/undo", p.member((*request).undo)).on(""),

		get("/portal/{org}/settings", p.member((*request).settings)),
		post("/portal/{org}/settings/name", p.manager((*request).renameOrganization)).on("settings"),
		post("/portal/{org}/settings/own-name", p.member((*request).nameMember)).on("settings"),

		get("/portal/{org}/notifications", p.member((*request).notifications)),
		post("/portal/{org}/notifications", p.member((*request).chooseNotifications)),
		post("/portal/{org}/notifications/test", p.member((*request).sendTestMail)).on("notifications"),

		get("/portal/{org}/events", p.member((*request).orgEvents)),
		get("/portal/{org}/events.csv", p.member(exclusive((*request).exportEvents))).longLived(),
		get("/portal/{org}/book", p.member((*request).book)),
		post("/portal/{org}/book", p.manager((*request).setBook)),
		get("/portal/{org}/book.csv", p.member(exclusive((*request).exportBook))).longLived(),
		get("/portal/{org}/activity", p.member((*request).activity)),
		get("/portal/{org}/activity.csv", p.manager(exclusive((*request).exportActivity))).longLived(),
		get("/portal/{org}/activity/commands", p.member((*request).commandLog)),
	}
}

// pathParameter is a parameter of a pattern.
var pathParameter = regexp.MustCompile(`\{[a-z]+\}`)

// redirectToForm redirects to the page that a form is on, whose parameters are those of the form's own
// address, and keeps the query.
func redirectToForm(page string) handler {
	return func(req *request) error {
		here := pathParameter.ReplaceAllStringFunc(page, func(name string) string {
			return url.PathEscape(req.http.PathValue(strings.Trim(name, "{}")))
		})
		req.redirectInOrg(here+req.rawQuery(), "")
		return nil
	}
}

// rawQuery returns the query of the request's address as it is, with its question mark; "" for none.
func (req *request) rawQuery() string {
	if req.http.URL.RawQuery == "" {
		return ""
	}
	return "?" + req.http.URL.RawQuery
}

func (p *Portal) asset(w http.ResponseWriter, r *http.Request, _ RequestInfo) {
	p.assets.serve(w, r, r.PathValue("name"))
}
