package httpapi

import (
	"net/http"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"

	"hubcloud/domain"
	"hubcloud/httpapi/response"
)

// Labels that stand for the method of requests with a method or path that no route has.
const (
	methodOther = "other"
	methodAny   = "any"
)

// newRouter returns the router of all routes. Every request passes, in this order,
//
//  1. track: request id, panics, log line, metrics;
//  2. the router, which picks a route of the table or one that answers 404 or 405;
//  3. route.run: API key and rate limit, scope, body, time limit;
//  4. the route's handler.
func (a *api) newRouter() *chi.Mux {
	r := chi.NewRouter()
	r.Use(a.track)
	allowed := map[string][]string{} // methods by pattern
	for _, rt := range a.routes() {
		r.Method(rt.method, rt.pattern, a.bind(rt))
		if _, ok := a.wrongMethod[rt.pattern]; !ok {
			a.wrongMethod[rt.pattern] = a.bind(
				&route{method: methodOther, pattern: rt.pattern, access: rt.access},
			)
		}
		allowed[rt.pattern] = append(allowed[rt.pattern], rt.method)
		slices.Sort(allowed[rt.pattern])
		a.wrongMethod[rt.pattern].handle = rejectMethod(strings.Join(allowed[rt.pattern], ", "))
		if !slices.Contains(a.methods, rt.method) {
			a.methods = append(a.methods, rt.method)
		}
	}
	unknown := func(pattern string, access access) *route {
		return a.bind(
			&route{method: methodAny, pattern: pattern, access: access, handle: rejectPath},
		)
	}
	a.unknownPath = map[string]*route{
		"v1":   unknown("/v1/", forKey),
		"link": unknown("/link/", forAddress),
		"":     unknown("/", forAddress),
	}
	a.unparsed = a.bind(&route{method: methodOther, pattern: "(unreadable)", access: forAddress})
	a.operatorReadiness = a.bind(&route{
		method: methodAny, pattern: "/readyz (operators)", quiet: true, handle: a.detailedReadiness,
	})
	r.NotFound(a.notFound)
	r.MethodNotAllowed(a.methodNotAllowed)
	return r
}

// bind sets the API and the metrics of a route.
func (a *api) bind(rt *route) *route {
	rt.api, rt.metrics = a, a.metrics.route(rt)
	return rt
}

// track is the middleware that begins and ends each request. It passes a *request to the router as
// the ResponseWriter, so that the request can count what is written, and guarantees one answer, one
// log line and one count for each request.
func (a *api) track(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req := a.begin(w, r)
		defer req.end()
		path := routePath(r)
		if strings.Contains(path, "//") { // the router would take an empty segment for an id
			a.notFound(req, r)
			return
		}
		chi.RouteContext(r.Context()).RoutePath = path
		next.ServeHTTP(req, r)
	})
}

// routePath returns the path to route by. A letter and its percent-encoding are the same (RFC 3986,
// section 6.2.2.2), but an encoded slash is not a separator: a path that has one stays encoded and
// matches no route.
func routePath(r *http.Request) string {
	if raw := r.URL.RawPath; raw != "" &&
		(strings.Contains(raw, "%2F") || strings.Contains(raw, "%2f")) {
		return raw
	}
	return r.URL.Path
}

// notFound answers a path that no route has.
func (a *api) notFound(w http.ResponseWriter, r *http.Request) {
	segment, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	rt, ok := a.unknownPath[segment]
	if !ok {
		rt = a.unknownPath[""]
	}
	rt.ServeHTTP(w, r)
}

// methodNotAllowed answers a method that the path does not support. The router also calls it for
// methods that the router does not know, before it looks for the path.
func (a *api) methodNotAllowed(w http.ResponseWriter, r *http.Request) {
	for _, method := range a.methods {
		if pattern := a.router.Find(chi.NewRouteContext(), method, routePath(r)); pattern != "" {
			a.wrongMethod[pattern].ServeHTTP(w, r)
			return
		}
	}
	a.notFound(w, r)
}

func rejectPath(req *request) error {
	if req.redirectToPortal() {
		return nil
	}
	return domain.Errorf(domain.CodeNotFound, "no such path")
}

func rejectMethod(allowed string) func(*request) error {
	return func(req *request) error {
		req.w.Header().Set("Allow", allowed)
		return response.WithStatus(http.StatusMethodNotAllowed, domain.Errorf(
			domain.CodeInvalidRequest, "method: must be one of %s for this path", allowed,
		))
	}
}
