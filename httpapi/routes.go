package httpapi

import (
	"net/http"
	"slices"
	"strings"

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
	// held says that the request may last as long as its client wants; otherwise it has managementTimeout.
	held bool
	// quiet says that its log lines are for debugging only: machines ask every few seconds.
	quiet  bool
	handle func(*exchange) error

	api   *api
	count *routeMetrics
}

// routes is everything that is served.
func (a *api) routes() []*route {
	return []*route{
		{method: "GET", pattern: "/v1/sites", access: forKey, scope: domain.ScopeSitesRead, handle: a.listSites},
		{method: "POST", pattern: "/v1/sites", access: forKey, scope: domain.ScopeSitesWrite, takesBody: true, handle: a.createSite},
		{method: "GET", pattern: "/v1/sites/{site_id}", access: forKey, scope: domain.ScopeSitesRead, handle: a.getSite},
		{method: "PATCH", pattern: "/v1/sites/{site_id}", access: forKey, scope: domain.ScopeSitesWrite, takesBody: true, handle: a.updateSite},

		{method: "GET", pattern: "/v1/hubs", access: forKey, scope: domain.ScopeHubsRead, handle: a.listHubs},
		{method: "POST", pattern: "/v1/hubs", access: forKey, scope: domain.ScopeHubsWrite, takesBody: true, handle: a.addHub},
		{method: "GET", pattern: "/v1/hubs/{hub_id}", access: forKey, scope: domain.ScopeHubsRead, handle: a.getHub},
		{method: "PATCH", pattern: "/v1/hubs/{hub_id}", access: forKey, scope: domain.ScopeHubsWrite, takesBody: true, handle: a.updateHub},
		{method: "POST", pattern: "/v1/hubs/{hub_id}/reset-link", access: forKey, scope: domain.ScopeHubsWrite, handle: a.resetLink},

		{method: "GET", pattern: "/v1/hubs/{hub_id}/events", access: forKey, scope: domain.ScopeEventsRead, held: true, handle: a.readEvents},
		{method: "GET", pattern: "/v1/hubs/{hub_id}/events/stream", access: forKey, scope: domain.ScopeEventsRead, held: true, handle: a.streamEvents},

		{method: "POST", pattern: "/link/v1/certificates", access: forAddress, takesBody: true, handle: a.issueCertificate},

		{method: "GET", pattern: "/healthz", access: forAnyone, quiet: true, handle: a.health},
		{method: "HEAD", pattern: "/healthz", access: forAnyone, quiet: true, handle: a.health},
		{method: "GET", pattern: "/readyz", access: forAnyone, quiet: true, handle: a.readiness},
		{method: "HEAD", pattern: "/readyz", access: forAnyone, quiet: true, handle: a.readiness},
	}
}

// newMux makes the mux of the table, with an answer of our own for every other method and every other path. What is under /v1
// asks for a key also where there is nothing: an outsider learns no path by asking.
func (a *api) newMux() (*http.ServeMux, map[string]*route) {
	mux := http.NewServeMux()
	register := func(pattern string, rt *route) *route {
		rt.api, rt.count = a, a.metrics.route(rt.method, rt.pattern)
		mux.Handle(pattern, rt)
		return rt
	}
	methods := map[string][]string{}
	accesses := map[string]access{}
	for _, rt := range a.routes() {
		register(rt.method+" "+rt.pattern, rt)
		methods[rt.pattern] = append(methods[rt.pattern], rt.method)
		accesses[rt.pattern] = rt.access
	}
	for pattern, allowed := range methods {
		slices.Sort(allowed)
		refuse := refuseMethod(strings.Join(allowed, ", "))
		register(pattern, &route{method: "other", pattern: pattern, access: accesses[pattern], handle: refuse})
		if slices.Contains(allowed, "GET") && !slices.Contains(allowed, "HEAD") {
			// A pattern for GET matches HEAD as well, unless there is one for HEAD.
			register("HEAD "+pattern, &route{method: "other", pattern: pattern, access: accesses[pattern], handle: refuse})
		}
	}
	nowhere := map[string]*route{}
	for segment, access := range map[string]access{"v1": forKey, "link": forAddress} {
		rt := &route{method: "any", pattern: "/" + segment + "/", access: access, handle: noSuchPath}
		nowhere[segment] = register("/"+segment+"/", rt)
		register("/"+segment, rt)
	}
	nowhere[""] = register("/", &route{method: "any", pattern: "/", access: forAnyone, handle: noSuchPath})
	return mux, nowhere
}

// nothingAt gives the route that answers for a path that cannot be one of ours.
func (a *api) nothingAt(p string) *route {
	segment, _, _ := strings.Cut(strings.TrimPrefix(p, "/"), "/")
	if rt, ok := a.nowhere[segment]; ok {
		return rt
	}
	return a.nowhere[""]
}

func noSuchPath(*exchange) error {
	return domain.Errorf(domain.CodeNotFound, "there is nothing at this path")
}

func refuseMethod(allowed string) func(*exchange) error {
	return func(x *exchange) error {
		x.w.Header().Set("Allow", allowed)
		return &refusal{status: http.StatusMethodNotAllowed,
			Err: domain.Errorf(domain.CodeInvalidRequest, "method: this path takes %s", allowed)}
	}
}
