package httpapi

import (
	"net/http"

	"hubcloud/httpapi/portal"
)

// portalRoutes takes the portal's pages into the table. They count on the client's address, and answer people: only what goes wrong before a
// request gets there has the error body.
func (a *api) portalRoutes() []*route {
	routes := make([]*route, 0, len(a.Portal))
	for _, page := range a.Portal {
		routes = append(routes, &route{
			method: page.Method, pattern: page.Pattern, access: forAddress, takesBody: page.Method == http.MethodPost, held: page.Held, live: page.Live,
			handle: func(x *exchange) error {
				page.Handle(x, x.r.WithContext(x.ctx), portal.Caller{RequestID: x.id, At: x.start, Network: addressBlock(x.remote)})
				if x.status == 0 {
					return x.ctx.Err() // the visitor has gone
				}
				return nil
			},
		})
	}
	return routes
}
