package portal

import (
	"net/http"
	"net/netip"
	"slices"
	"time"
)

// Route is a page or an action, for the API's router: a method, a pattern with {names} for
// r.PathValue, and what answers.
type Route struct {
	Method, Pattern string
	// Held says that the request may last as long as its visitor wants, Live that a hub is asked
	// meanwhile.
	Held, Live bool
	Handle     func(w http.ResponseWriter, r *http.Request, caller Caller)
}

// Caller is what the router knows of a request.
type Caller struct {
	RequestID string
	At        time.Time
	// Network is the block of addresses that the request came from; those of one count together.
	Network netip.Prefix
	// Fault hears why an answer is a failure of the service, for the request's line in the log;
	// nil: nobody does.
	Fault func(error)
}

// Routes is everything under /portal. What is read with GET can be asked with HEAD.
func (p *Portal) Routes() []Route {
	all := slices.Concat(p.entrance(), p.organization(), p.hubPages())
	for _, route := range all {
		if route.Method == http.MethodGet && !route.Held {
			route.Method = http.MethodHead
			all = append(all, route)
		}
	}
	return all
}

// entrance is what needs no session, and what needs one alone.
func (p *Portal) entrance() []Route {
	return []Route{
		{Method: "GET", Pattern: "/portal", Handle: p.public((*visit).home)},
		{Method: "GET", Pattern: "/portal/", Handle: p.public((*visit).home)},
		{Method: "GET", Pattern: "/portal/assets/{name}", Handle: p.asset},
		{
			Method:  "GET",
			Pattern: "/portal/invitations/{token}",
			Handle:  p.public((*visit).invitation),
		},
		{Method: "GET", Pattern: "/portal/sign-in", Handle: p.public((*visit).signInPage)},
		{Method: "POST", Pattern: "/portal/sign-in", Handle: p.public((*visit).askForLink)},
		{Method: "GET", Pattern: "/portal/sign-in/{token}", Handle: p.public((*visit).openLink)},
		{Method: "POST", Pattern: "/portal/sign-in/{token}", Handle: p.public((*visit).useLink)},
		{
			Method:  "GET",
			Pattern: "/portal/*",
			Handle:  p.public(func(*visit) error { return errNoPage }),
		},
		{Method: "POST", Pattern: "/portal/sign-out", Handle: p.signedIn((*visit).signOut)},
		{
			Method:  "GET",
			Pattern: "/portal/organizations",
			Handle:  p.signedIn((*visit).organizations),
		},
		{
			Method:  "POST",
			Pattern: "/portal/organizations",
			Handle:  p.signedIn((*visit).createOrganization),
		},
		{
			Method:  "GET",
			Pattern: "/portal/organizations/new",
			Handle:  p.signedIn((*visit).newOrganization),
		},
	}
}

// organization is the pages of one organization, for its members.
func (p *Portal) organization() []Route {
	return []Route{
		{Method: "GET", Pattern: "/portal/{org}/members", Handle: p.member((*visit).members)},
		{
			Method:  "POST",
			Pattern: "/portal/{org}/members/{member}/role",
			Handle:  p.manager((*visit).changeRole),
		},
		{
			Method:  "GET",
			Pattern: "/portal/{org}/members/{member}/role",
			Handle:  p.member(formOf("members")),
		},
		{
			Method:  "GET",
			Pattern: "/portal/{org}/members/{member}/remove",
			Handle:  p.member((*visit).confirmRemoval),
		},
		{
			Method:  "POST",
			Pattern: "/portal/{org}/members/{member}/remove",
			Handle:  p.member((*visit).removeMember),
		},
		{Method: "POST", Pattern: "/portal/{org}/invitations", Handle: p.manager((*visit).invite)},
		{Method: "GET", Pattern: "/portal/{org}/invitations", Handle: p.member(formOf("members"))},
		{
			Method:  "POST",
			Pattern: "/portal/{org}/invitations/{invitation}/revoke",
			Handle:  p.manager((*visit).revokeInvitation),
		},

		{Method: "GET", Pattern: "/portal/{org}/keys", Handle: p.member((*visit).keys)},
		{Method: "POST", Pattern: "/portal/{org}/keys", Handle: p.manager((*visit).createKey)},
		{
			Method:  "GET",
			Pattern: "/portal/{org}/keys/{key}/revoke",
			Handle:  p.manager((*visit).confirmRevocation),
		},
		{
			Method:  "POST",
			Pattern: "/portal/{org}/keys/{key}/revoke",
			Handle:  p.manager((*visit).revokeKey),
		},

		{Method: "GET", Pattern: "/portal/{org}/sites", Handle: p.member((*visit).sites)},
		{Method: "POST", Pattern: "/portal/{org}/sites", Handle: p.manager((*visit).createSite)},
		{
			Method:  "POST",
			Pattern: "/portal/{org}/sites/{site}/name",
			Handle:  p.manager((*visit).renameSite),
		},
		{
			Method:  "GET",
			Pattern: "/portal/{org}/sites/{site}/name",
			Handle:  p.member(formOf("sites")),
		},
		{Method: "POST", Pattern: "/portal/{org}/sites/hubs", Handle: p.manager((*visit).addHub)},
		{Method: "GET", Pattern: "/portal/{org}/sites/hubs", Handle: p.member(formOf("sites"))},

		{Method: "GET", Pattern: "/portal/{org}/activity", Handle: p.member((*visit).activity)},
		{
			Method:  "GET",
			Pattern: "/portal/{org}/activity/commands",
			Handle:  p.member((*visit).commandLog),
		},
	}
}

// formOf leads to the page that a form is on. Its own address is in the browser's bar after it was
// refused, and is loaded again from there.
func formOf(page string) handler {
	return func(v *visit) error {
		v.redirectInOrg(page+v.listQuery(), "")
		return nil
	}
}

func (p *Portal) asset(w http.ResponseWriter, r *http.Request, _ Caller) {
	p.assets.serve(w, r, r.PathValue("name"))
}
