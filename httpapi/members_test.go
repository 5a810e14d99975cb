package httpapi

import (
	"strings"
	"testing"

	"hubcloud/domain"
)

// Answers about members and invitations have exactly the contract's fields.
func TestMemberForms(t *testing.T) {
	t.Parallel()
	const (
		first = `{"id":"` + memberOwner + `","email":"` + owner + `","role":"owner",` +
			`"joined_at":"TIME"}`
		head   = `{"id":"` + memberAdmin + `","email":"bo+1@example.org","role":`
		admin  = head + `"admin","joined_at":"TIME"}`
		times  = `,"status":"pending","created_at":"TIME","expires_at":"TIME"}`
		listed = `{"id":"` + invitationOne + `","email":"cy@example.org","role":"admin"` + times
		made   = `{"id":"NEW","email":"di@example.org","role":`
		member = "/v1/members/" + memberAdmin
	)
	checkForms(t, startReal(t, nil), []formTest{
		{"GET", "/v1/members", "", 200, `{"data":[` + first + `,` + admin + `],"has_more":false}`},
		{"GET", "/v1/members?limit=1", "", 200, `{"data":[` + first + `],"has_more":true}`},
		{
			"GET", "/v1/members?limit=1&starting_after=" + memberOwner, "", 200,
			`{"data":[` + admin + `],"has_more":false}`,
		},
		{"GET", member, "", 200, admin},
		{"PATCH", member, `{"role":"member"}`, 200, head + `"member","joined_at":"TIME"}`},
		{"DELETE", member, "", 204, ""},
		{"GET", "/v1/invitations", "", 200, `{"data":[` + listed + `],"has_more":false}`},
		{
			"GET", "/v1/invitations?limit=50&starting_after=" + invitationOne, "", 200,
			`{"data":[],"has_more":false}`,
		},
		{"POST", "/v1/invitations", `{"email":" di@example.org "}`, 201, made + `"member"` + times},
		{
			"POST", "/v1/invitations", `{"email":"di@example.org","role":"admin"}`, 201,
			made + `"admin"` + times,
		},
		{"DELETE", "/v1/invitations/" + invitationOne, "", 204, ""},
	})
}

// Errors have the right status and type, and a message that names the problem.
func TestMemberErrors(t *testing.T) {
	t.Parallel()
	const inv, nf, forbidden = domain.CodeInvalidRequest, domain.CodeNotFound, domain.CodeForbidden
	s := startReal(t, nil)
	for _, tt := range []struct {
		method, path, body string
		status             int
		code               domain.Code
		names              string
	}{
		{"GET", "/v1/members?limit=0", "", 400, inv, "limit: must be an integer from 1 to 50"},
		{"GET", "/v1/members?limit=51", "", 400, inv, "limit"},
		{
			"GET", "/v1/members?starting_after=x", "", 400, inv,
			"starting_after: must be an id from the list of members",
		},
		{"GET", "/v1/members?starting_after=" + nowhere, "", 400, inv, "starting_after"},
		{"GET", "/v1/members/x", "", 404, nf, "member"},
		{"GET", "/v1/members/" + memberForeign, "", 404, nf, "member"},
		{"GET", "/v1/members/" + strings.ToUpper(memberAdmin), "", 404, nf, "member"},
		{"PATCH", "/v1/members/x", `{"role":"admin"}`, 404, nf, "member"},
		{"PATCH", "/v1/members/" + memberForeign, `{"role":"admin"}`, 404, nf, "member"},
		{"PATCH", "/v1/members/" + memberOwner, `{"role":"admin"}`, 403, forbidden, "owner"},
		{"PATCH", "/v1/members/" + memberAdmin, `{"role":"owner"}`, 403, forbidden, "owner"},
		{"PATCH", "/v1/members/" + memberAdmin, `{}`, 400, inv, "role: is required"},
		{
			"PATCH", "/v1/members/" + memberAdmin, `{"role":null}`, 400, inv,
			"role: must be a string",
		},
		{"PATCH", "/v1/members/" + memberAdmin, `{"role":"Admin"}`, 400, inv, "admin or member"},
		{
			"PATCH", "/v1/members/" + memberAdmin, `{"role":"` + strings.Repeat("x", 5000) + `"}`,
			400, inv, "role",
		},
		{
			"PATCH", "/v1/members/" + memberAdmin, `{"role":"admin","email":"x@example.org"}`, 400,
			inv, `"email"`,
		},
		{"DELETE", "/v1/members/" + memberOwner, "", 403, forbidden, "owner"},
		{"DELETE", "/v1/members/" + memberForeign, "", 404, nf, "member"},
		{"DELETE", "/v1/members/x", "", 404, nf, "member"},
		{"POST", "/v1/members", `{}`, 405, inv, "GET"},
		{"PUT", "/v1/members/" + memberAdmin, `{}`, 405, inv, "DELETE, GET, PATCH"},

		{"GET", "/v1/invitations?limit=x", "", 400, inv, "limit"},
		{
			"GET", "/v1/invitations?starting_after=x", "", 400, inv,
			"starting_after: must be an id from the list of invitations",
		},
		{"POST", "/v1/invitations", `{}`, 400, inv, "email: is required"},
		{"POST", "/v1/invitations", `{"role":"admin"}`, 400, inv, "email: is required"},
		{"POST", "/v1/invitations", `{"email":null}`, 400, inv, "email: must be a string"},
		{"POST", "/v1/invitations", `{"email":"nobody"}`, 400, inv, "email"},
		{"POST", "/v1/invitations", `{"email":"Ann <ann@example.org>"}`, 400, inv, "email"},
		{
			"POST", "/v1/invitations", `{"email":"a@example.org","role":null}`, 400, inv,
			"role: must be a string",
		},
		{
			"POST", "/v1/invitations", `{"email":"a@example.org","role":"guest"}`, 400, inv,
			"admin or member",
		},
		{
			"POST", "/v1/invitations", `{"email":"a@example.org","role":"owner"}`, 403, forbidden,
			"owner",
		},
		{
			"POST", "/v1/invitations", `{"email":"a@example.org","name":"Ann"}`, 400, inv,
			`"name"; allowed fields are email, role`,
		},
		{"DELETE", "/v1/invitations/x", "", 404, nf, "invitation"},
		{"DELETE", "/v1/invitations/" + nowhere, "", 404, nf, "invitation"},
		{"GET", "/v1/invitations/" + invitationOne, "", 405, inv, "DELETE"},
	} {
		a := s.do(tt.method, tt.path, tt.body)
		checkHeaders(t, a)
		if msg := wantError(t, a, tt.status, tt.code); !strings.Contains(msg, tt.names) ||
			len(msg) > 300 {
			t.Errorf(
				"%s %s %.60s: got message %q, want %q in it, and at most 300 bytes", tt.method,
				tt.path, tt.body, msg, tt.names,
			)
		}
	}
}

// Each route requires the scope of the contract's table and no other, and its error names the
// scope.
func TestScopes(t *testing.T) {
	t.Parallel()
	want := map[string]domain.Scope{
		"GET /v1/sites": "sites:read", "POST /v1/sites": "sites:write",
		"GET /v1/sites/{site_id}": "sites:read", "PATCH /v1/sites/{site_id}": "sites:write",
		"GET /v1/hubs": "hubs:read", "POST /v1/hubs": "hubs:write",
		"GET /v1/state":         "hubs:read",
		"GET /v1/hubs/{hub_id}": "hubs:read", "PATCH /v1/hubs/{hub_id}": "hubs:write",
		"POST /v1/hubs/{hub_id}/reset-link":                   "hubs:write",
		"GET /v1/hubs/{hub_id}/state":                         "hubs:read",
		"GET /v1/hubs/{hub_id}/devices":                       "hubs:read",
		"GET /v1/hubs/{hub_id}/devices/{device_id}":           "hubs:read",
		"PATCH /v1/hubs/{hub_id}/devices/{device_id}":         "hubs:write",
		"DELETE /v1/hubs/{hub_id}/devices/{device_id}":        "hubs:write",
		"POST /v1/hubs/{hub_id}/pairing":                      "hubs:write",
		"DELETE /v1/hubs/{hub_id}/pairing":                    "hubs:write",
		"POST /v1/hubs/{hub_id}/removal":                      "hubs:write",
		"DELETE /v1/hubs/{hub_id}/removal":                    "hubs:write",
		"POST /v1/hubs/{hub_id}/devices/{device_id}/commands": "hubs:command",
		"GET /v1/events":                                      "events:read",
		"GET /v1/events/stream":                               "events:read",
		"GET /v1/readers":                                     "events:read",
		"GET /v1/hubs/{hub_id}/events":                        "events:read",
		"GET /v1/hubs/{hub_id}/events/stream":                 "events:read",
		"GET /v1/members":                                     "members:read",
		"GET /v1/members/{member_id}":                         "members:read",
		"PATCH /v1/members/{member_id}":                       "members:write",
		"DELETE /v1/members/{member_id}":                      "members:write",
		"GET /v1/invitations":                                 "members:read",
		"POST /v1/invitations":                                "members:write",
		"DELETE /v1/invitations/{invitation_id}":              "members:write",
	}
	s := start(t, nil)
	ids := strings.NewReplacer(
		"{site_id}", siteOne, "{hub_id}", string(hubOne), "{device_id}", "1",
		"{member_id}", memberAdmin, "{invitation_id}", invitationOne,
	)
	seed := byte(10)
	for _, rt := range (&api{}).routes() {
		if rt.access != forKey {
			continue
		}
		name := rt.method + " " + rt.pattern
		scope, ok := want[name]
		if !ok {
			t.Errorf("%s: got a route that is not in the contract, want none", name)
			continue
		}
		delete(want, name)
		others := []domain.Scope{}
		for _, other := range domain.AllScopes() {
			if other != scope {
				others = append(others, other)
			}
		}
		bearer, _ := s.addKey(orgOne, seed, others...)
		seed++
		a := s.do(rt.method, ids.Replace(rt.pattern), "", "Authorization", bearer)
		want := "the API key does not have the scope " + string(scope)
		if got := wantError(t, a, 403, domain.CodeInsufficientScope); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
		wantError(
			t, s.do(rt.method, ids.Replace(rt.pattern), "", "Authorization", ""), 401,
			domain.CodeUnauthenticated,
		)
	}
	if len(want) > 0 {
		t.Errorf("not served: %v", want)
	}
}
