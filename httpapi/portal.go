package httpapi

import (
	"net/http"
	"strings"
	"time"

	"hubcloud/httpapi/portal"
	"hubcloud/httpapi/response"
	"hubcloud/streams/shares"
)

// portalUsers stands for the organization of all visitors of the portal among the active ones.
const portalUsers = ""

// portalRoutes returns the routes of the portal's pages. Their requests count on the client's
// address.
func (a *api) portalRoutes() []*route {
	if a.Portal == nil {
		return nil
	}
	var routes []*route
	for _, page := range a.Portal.Routes() {
		routes = append(routes, &route{
			method: page.Method, pattern: page.Pattern, access: forAddress,
			readsBody: page.Method == http.MethodPost, longLived: page.LongLived,
			asksHub: page.AsksHub,
			handle: func(req *request) error {
				req.api.Shares.Active(portalUsers, time.Now())
				page.Handle(req, req.http.WithContext(req.ctx), req.portalRequestInfo())
				if req.status == 0 {
					return req.ctx.Err() // the visitor has gone
				}
				return nil
			},
		})
	}
	return routes
}

// portalRequestInfo returns what the portal needs to know about the request.
func (req *request) portalRequestInfo() portal.RequestInfo {
	return portal.RequestInfo{
		RequestID:   req.id,
		At:          req.start,
		Address:     req.remote.String(),
		Network:     shares.AddressBlock(req.remote),
		RecordError: func(err error) { req.err = err },
	}
}

// writeErrorPage answers with a page of the portal if the request was for one, and reports whether
// it was. A request that could not be parsed has no URL.
func (req *request) writeErrorPage(answer response.Answer) bool {
	if req.api.Portal == nil || req.http.URL == nil ||
		req.http.URL.Path != "/portal" && !strings.HasPrefix(req.http.URL.Path, "/portal/") {
		return false
	}
	req.api.Portal.WriteError(req, req.http, req.portalRequestInfo(), answer.Status, answer.Error)
	return true
}

// redirectToPortal redirects a browser that asks for / to the portal, and reports whether it did.
// Programs get 404 there.
func (req *request) redirectToPortal() bool {
	if req.api.Portal == nil || req.http.Method != http.MethodGet || req.http.URL.Path != "/" ||
		!strings.Contains(req.http.Header.Get("Accept"), "text/html") {
		return false
	}
	req.w.Header().Set("Location", "portal")
	req.w.Header().Set("Vary", "Accept")
	req.WriteHeader(http.StatusSeeOther)
	return true
}
