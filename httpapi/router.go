package httpapi

import (
	"net/http"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"

	"hubcloud/domain"
)

// What stands for the method of requests that are refused for it, and of those to where there is
// nothing.
const (
	methodOther = "other"
	methodAny   = "any"
)

// newRouter puts the table on a router. Every request passes, in this order,
//
//  1. exchanges: request id, panics, log line, metrics;
//  2. the router, which finds its route: a line of the table, or the one that answers 404 or 405 there;
//  3. route.run: API key and rate limit, scope, body, time limit, each as far as the route asks for it;
//  4. the route's handler.
func (a *api) newRouter() *chi.Mux {
	r := chi.NewRouter()
	r.Use(a.exchanges)
	allowed := map[string][]string{} // methods by pattern
	for _, rt := range a.routes() {
		r.Method(rt.method, rt.pattern, a.counted(rt))
		if _, ok := a.refusing[rt.pattern]; !ok {
			a.refusing[rt.pattern] = a.counted(
				&route{method: methodOther, pattern: rt.pattern, access: rt.access},
			)
		}
		allowed[rt.pattern] = append(allowed[rt.pattern], rt.method)
		slices.Sort(allowed[rt.pattern])
		a.refusing[rt.pattern].handle = refuseMethod(strings.Join(allowed[rt.pattern], ", "))
		if !slices.Contains(a.methods, rt.method) {
			a.methods = append(a.methods, rt.method)
		}
	}
	a.nowhere = map[string]*route{
		"v1": a.counted(
			&route{method: methodAny, pattern: "/v1/", access: forKey, handle: noSuchPath},
		),
		"link": a.counted(
			&route{method: methodAny, pattern: "/link/", access: forAddress, handle: noSuchPath},
		),
		"": a.counted(
			&route{method: methodAny, pattern: "/", access: forAddress, handle: noSuchPath},
		),
	}
	a.unread = a.counted(&route{method: methodOther, pattern: "(unreadable)", access: forAddress})
	a.details = a.counted(
		&route{
			method:  methodAny,
			pattern: "/readyz (operators)",
			access:  forAnyone,
			quiet:   true,
			handle:  a.detailedReadiness,
		},
	)
	r.NotFound(a.notFound)
	r.MethodNotAllowed(a.methodNotAllowed)
	return r
}

// counted makes rt ready to answer.
func (a *api) counted(rt *route) *route {
	rt.api, rt.count = a, a.metrics.route(rt)
	return rt
}

// exchanges begins an exchange for each request, and hands it on in place of the server's
// ResponseWriter. Whatever happens to a request, it ends with one answer, one log line and one
// count.
func (a *api) exchanges(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := a.begin(w, r)
		defer x.end()
		path := routePath(r)
		if strings.Contains(path, "//") { // the router would take an empty segment for an id
			a.notFound(x, r)
			return
		}
		chi.RouteContext(r.Context()).RoutePath = path
		next.ServeHTTP(x, r)
	})
}

// routePath gives the path to route by: as it was sent, but that a letter and its percent-encoding
// are the same (RFC 3986, section 6.2.2.2). An encoded slash is no separator; a path with one stays
// encoded, and there is nothing at it.
func routePath(r *http.Request) string {
	if raw := r.URL.RawPath; raw != "" &&
		(strings.Contains(raw, "%2F") || strings.Contains(raw, "%2f")) {
		return raw
	}
	return r.URL.Path
}

// notFound answers where there is nothing.
func (a *api) notFound(w http.ResponseWriter, r *http.Request) {
	segment, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	rt, ok := a.nowhere[segment]
	if !ok {
		rt = a.nowhere[""]
	}
	rt.ServeHTTP(w, r)
}

// methodNotAllowed answers a method that the path does not take. The router also comes here with
// methods that it does not know itself, before it looks for the path.
func (a *api) methodNotAllowed(w http.ResponseWriter, r *http.Request) {
	for _, method := range a.methods {
		if pattern := a.router.Find(chi.NewRouteContext(), method, routePath(r)); pattern != "" {
			a.refusing[pattern].ServeHTTP(w, r)
			return
		}
	}
	a.notFound(w, r)
}

func noSuchPath(x *exchange) error {
	if x.leadToPortal() {
		return nil
	}
	return domain.Errorf(domain.CodeNotFound, "there is nothing at this path")
}

func refuseMethod(allowed string) func(*exchange) error {
	return func(x *exchange) error {
		x.w.Header().Set("Allow", allowed)
		return &refusal{status: http.StatusMethodNotAllowed,
			Err: domain.Errorf(domain.CodeInvalidRequest, "method: this path takes %s", allowed)}
	}
}
