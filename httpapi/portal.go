package httpapi

import (
	"net/http"
	"strings"

	"hubcloud/domain"
	"hubcloud/httpapi/portal"
)

// portalRoutes takes the portal's pages into the table. They count on the client's address, and
// answer people: also what goes wrong before a request gets there is told by a page
// (refusedToPerson).
func (a *api) portalRoutes() []*route {
	if a.Portal == nil {
		return nil
	}
	var routes []*route
	for _, page := range a.Portal.Routes() {
		routes = append(routes, &route{
			method: page.Method, pattern: page.Pattern, access: forAddress,
			takesBody: page.Method == http.MethodPost, held: page.Held, live: page.Live,
			handle: func(x *exchange) error {
				page.Handle(x, x.r.WithContext(x.ctx), x.visitor())
				if x.status == 0 {
					return x.ctx.Err() // the visitor has gone
				}
				return nil
			},
		})
	}
	return routes
}

// visitor is what the portal is told of a request.
func (x *exchange) visitor() portal.Caller {
	return portal.Caller{
		RequestID: x.id,
		At:        x.start,
		Network:   addressBlock(x.remote),
		Fault:     func(err error) { x.err = err },
	}
}

// refusedToPerson answers a refusal with a page of the portal, if the request was for one. A
// request that could not be read was for nothing.
func (x *exchange) refusedToPerson(status int, refusal *domain.Error) bool {
	if x.api.Portal == nil || x.r.URL == nil ||
		x.r.URL.Path != "/portal" && !strings.HasPrefix(x.r.URL.Path, "/portal/") {
		return false
	}
	x.api.Portal.Refuse(x, x.r, x.visitor(), status, refusal)
	return true
}

// leadToPortal sends a person who has typed the service's bare address to the portal. To programs
// there is nothing at that path.
func (x *exchange) leadToPortal() bool {
	if x.api.Portal == nil || x.r.Method != http.MethodGet || x.r.URL.Path != "/" ||
		!strings.Contains(x.r.Header.Get("Accept"), "text/html") {
		return false
	}
	x.w.Header().Set("Location", "portal")
	x.w.Header().Set("Vary", "Accept")
	x.WriteHeader(http.StatusSeeOther)
	return true
}
