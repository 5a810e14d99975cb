package httpapi

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"hubcloud/domain"
	"hubcloud/httpapi/response"
)

// describable returns the routes that openapi.yaml must describe: all but the pages for people.
func describable(t *testing.T) map[string]*route {
	routes := map[string]*route{}
	for _, rt := range newAPI(t, Config{Environment: domain.EnvironmentDev}).api.routes() {
		if !strings.HasPrefix(rt.pattern, "/portal/") &&
			!strings.HasPrefix(rt.pattern, "/v1/reference") &&
			rt.pattern != "/llms.txt" && !strings.HasPrefix(rt.pattern, "/docs") &&
			(!strings.HasPrefix(rt.pattern, "/link") || strings.HasPrefix(rt.pattern, "/link/v1/")) {
			routes[rt.method+" "+rt.pattern] = rt
		}
	}
	return routes
}

// The routing table and openapi.yaml have the same routes, with the same scope, body, rate limit
// and statuses.
func TestRoutesAreDescribed(t *testing.T) {
	t.Parallel()
	routes := describable(t)
	for _, op := range described(t).operations {
		name := op.String()
		rt, ok := routes[name]
		if !ok {
			t.Errorf("%s: described without a route, want one", name)
			continue
		}
		delete(routes, name)
		if op.scope != string(rt.scope) || op.keyless != (rt.access != forKey) {
			t.Errorf(
				"%s: described with scope %q, keyless: %t, want scope %q as its route", name,
				op.scope, op.keyless, rt.scope,
			)
		}
		described := strings.HasPrefix(op.description, "Scope: `"+op.scope+"`.\n")
		if described != (op.scope != "") {
			t.Errorf(
				"%s: description begins with %.30q, want its scope %q", name, op.description,
				op.scope,
			)
		}
		if query := slices.Sorted(slices.Values(op.query)); !slices.Equal(
			query, slices.Sorted(slices.Values(rt.query)),
		) {
			t.Errorf("%s: described with parameters %v, want %v as its route", name, query, rt.query)
		}
		if (op.body != "") != rt.readsBody {
			t.Errorf(
				"%s: described with body %q, want one: %t as its route", name, op.body,
				rt.readsBody,
			)
		}
		if want := statusesOf(rt); !slices.Equal(op.statuses(), want) {
			t.Errorf("%s: described are %v; the route answers %v", name, op.statuses(), want)
		}
		for _, status := range op.statuses() {
			counted := slices.Contains(op.answers[status].headers, "Ratelimit-Remaining")
			if counted != (rt.access == forAddress || rt.access == forKey) {
				t.Errorf(
					"%s: %d described with rate limit: %t, want %t", name, status, counted,
					rt.access == forAddress || rt.access == forKey,
				)
			}
		}
	}
	for name := range routes {
		t.Errorf("%s: not described, want a description of every route", name)
	}
}

// particular holds the statuses of a route that do not follow from its kind. The first is that of
// success.
var particular = map[string][]int{
	"POST /v1/commands":    {202, 409},
	"POST /v1/credentials": {202, 409},
	"POST /v1/sites":       {201, 409},
	"POST /v1/hubs/{hub_id}/devices/{device_id}/credentials":         {201, 409},
	"PATCH /v1/hubs/{hub_id}/devices/{device_id}/credentials/{slot}": {200, 409},
	"POST /v1/invitations":                                {201, 409},
	"POST /v1/hubs":                                       {200, 404, 409, 422},
	"POST /v1/hubs/{hub_id}/reset-link":                   {204},
	"POST /v1/hubs/{hub_id}/pairing":                      {202},
	"POST /v1/hubs/{hub_id}/removal":                      {202},
	"POST /v1/hubs/{hub_id}/devices/{device_id}/commands": {202, 409, 422},
	"POST /v1/webhooks":                                   {201, 409},
	"POST /v1/webhooks/{webhook_id}/test":                 {200},
	"POST /v1/webhooks/{webhook_id}/replay":               {200, 410},
	"POST /v1/webhooks/{webhook_id}/rotate-secret":        {200},
	"GET /v1/events":                                      {200, 410},
	"GET /v1/audit":                                       {200, 410},
	"GET /v1/audit.csv":                                   {200, 410},
	"GET /v1/audit/stream":                                {200, 410},
	"GET /v1/events/stream":                               {200, 410},
	"GET /v1/hubs/{hub_id}/events":                        {200, 410},
	"GET /v1/hubs/{hub_id}/events/stream":                 {200, 410},
	"GET /v1/openapi.yaml":                                {200, 304},
	"HEAD /v1/openapi.yaml":                               {200, 304},
	"GET /v1/openapi-3.2.yaml":                            {200, 304},
	"HEAD /v1/openapi-3.2.yaml":                           {200, 304},
	"GET /v1/openapi-root.yaml":                           {200, 304},
	"HEAD /v1/openapi-root.yaml":                          {200, 304},
	"POST /link/v1/certificates":                          {201, 401},
	"GET /readyz":                                         {200, 503},
	"HEAD /readyz":                                        {200, 503},
}

// statusesOf returns the statuses of a route, by its kind and by the contract, ascending.
func statusesOf(rt *route) []int {
	name := rt.method + " " + rt.pattern
	statuses := particular[name]
	if statuses == nil {
		statuses = []int{map[string]int{"POST": 201, "DELETE": 204}[rt.method]}
		statuses[0] = cmp.Or(statuses[0], 200)
	}
	statuses = append([]int{400}, statuses...) // a body of more than 64 KiB, at the least
	if rt.access == forKey {
		statuses = append(statuses, 401, 403)
	}
	if rt.access != forAnyone {
		statuses = append(statuses, 429)
	}
	if strings.Contains(rt.pattern, "{") {
		statuses = append(statuses, 404)
	}
	if rt.asksHub && name != "POST /v1/commands" { // it answers with the errors of hubs inside
		statuses = append(statuses, 502, 503, 504)
	}
	// these ask no other component
	if rt.pattern != "/healthz" && !strings.HasPrefix(rt.pattern, "/v1/openapi") {
		statuses = append(statuses, 500)
		if rt.access != forAnyone {
			statuses = append(statuses, 503)
		}
	}
	slices.Sort(statuses)
	return slices.Compact(statuses)
}

// The domain and openapi.yaml have the same error types, in the same order and with the same
// statuses.
func TestErrorTypesAreDescribed(t *testing.T) {
	statuses := response.Statuses()
	t.Parallel()
	d := described(t)
	types := d.schema("ErrorType").get("enum").texts()
	for _, name := range types {
		if statuses[domain.Code(name)] == 0 {
			t.Errorf("%s: described, want only codes that exist", name)
		}
	}
	for code := range statuses {
		if !slices.Contains(types, string(code)) {
			t.Errorf("%s: not described, want every code", code)
		}
	}
	used := map[string]bool{}
	for _, op := range d.operations {
		for _, status := range op.statuses() {
			for _, name := range op.answers[status].types {
				used[name] = true
				if statuses[domain.Code(name)] != status {
					t.Errorf(
						"%v: %s described at status %d, want %d", op, name, status,
						statuses[domain.Code(name)],
					)
				}
			}
			if status >= 400 && len(op.answers[status].types) == 0 && op.pattern != "/readyz" {
				t.Errorf("%v: %d described without types, want some", op, status)
			}
		}
	}
	for _, name := range types {
		if !used[name] {
			t.Errorf("%s: described for no operation, want at least one", name)
		}
	}
}

// Each scope of the domain is in the document's description of keys, in the same order, and is used
// by an operation.
func TestScopesAreDescribed(t *testing.T) {
	t.Parallel()
	d := described(t)
	var lines []string
	for line := range strings.Lines(d.roots[0].get("components", "securitySchemes", "apiKey", "description").text()) {
		if name, _, ok := strings.Cut(strings.TrimPrefix(line, "| `"), "` |"); ok &&
			strings.HasPrefix(line, "| `") {
			lines = append(lines, name)
		}
	}
	if want := fmt.Sprint(domain.AllScopes()); fmt.Sprint(lines) != want {
		t.Errorf("described are %v, want %s", lines, want)
	}
	for _, scope := range domain.AllScopes() {
		if !slices.ContainsFunc(
			d.operations, func(op *operation) bool { return op.scope == string(scope) },
		) {
			t.Errorf("%s: described for no operation, want at least one", scope)
		}
	}
}
