package contract

import (
	"net/http"
	"strings"
)

// endpoint is one line of the contract's tables of endpoints.
type endpoint struct {
	method, path string
	scope        string
	// body is a valid request body. Empty means that the endpoint has none.
	body string
	// live is set if the service forwards the request to the hub.
	live bool
}

// endpoints has every endpoint of the contract.
var endpoints = []endpoint{
	{http.MethodGet, "/sites", "sites:read", "", false},
	{http.MethodPost, "/sites", "sites:write", `{"name":"North"}`, false},
	{http.MethodGet, "/sites/{site_id}", "sites:read", "", false},
	{http.MethodPatch, "/sites/{site_id}", "sites:write", `{"name":"South"}`, false},

	{http.MethodGet, "/hubs", "hubs:read", "", false},
	{
		http.MethodPost,
		"/hubs",
		"hubs:write",
		`{"serial":"HUB-ZZZZ-ZZZZ-ZZZZ","site_id":"0190a0a0-0000-7000-8000-000000000000","name":"Lobby"}`,
		false,
	},
	{http.MethodGet, "/hubs/{hub_id}", "hubs:read", "", false},
	{http.MethodPatch, "/hubs/{hub_id}", "hubs:write", `{"name":"Lobby"}`, false},
	{http.MethodPost, "/hubs/{hub_id}/reset-link", "hubs:write", "", false},

	{http.MethodGet, "/hubs/{hub_id}/devices", "hubs:read", "", true},
	{http.MethodGet, "/hubs/{hub_id}/devices/{device_id}", "hubs:read", "", true},
	{
		http.MethodPatch,
		"/hubs/{hub_id}/devices/{device_id}",
		"hubs:write",
		`{"name":"Door","room":"Hall"}`,
		true,
	},
	{http.MethodDelete, "/hubs/{hub_id}/devices/{device_id}", "hubs:write", "", true},
	{http.MethodPost, "/hubs/{hub_id}/pairing", "hubs:write", `{"setup_code":"12345"}`, true},
	{http.MethodDelete, "/hubs/{hub_id}/pairing", "hubs:write", "", true},
	{http.MethodPost, "/hubs/{hub_id}/removal", "hubs:write", "", true},
	{http.MethodDelete, "/hubs/{hub_id}/removal", "hubs:write", "", true},

	{
		http.MethodPost,
		"/hubs/{hub_id}/devices/{device_id}/commands",
		"hubs:command",
		`{"key":"lock","value":true}`,
		true,
	},

	{http.MethodGet, "/hubs/{hub_id}/events", "events:read", "", false},
	{http.MethodGet, "/hubs/{hub_id}/events/stream", "events:read", "", false},

	{http.MethodGet, "/members", "members:read", "", false},
	{http.MethodGet, "/members/{member_id}", "members:read", "", false},
	{http.MethodPatch, "/members/{member_id}", "members:write", `{"role":"admin"}`, false},
	{http.MethodDelete, "/members/{member_id}", "members:write", "", false},
	{http.MethodGet, "/invitations", "members:read", "", false},
	{
		http.MethodPost,
		"/invitations",
		"members:write",
		`{"email":"somebody@example.com","role":"member"}`,
		false,
	},
	{http.MethodDelete, "/invitations/{invitation_id}", "members:write", "", false},
}

// Well-formed ids that do not exist.
const (
	noSite   = "0190a0a0-0000-7000-8000-000000000000"
	noHub    = "raw-zzzz-zzzz-zzzz"
	noMember = "0190a0a0-0000-7000-8000-000000000001"
)

// at returns the path with the given hub and otherwise unknown ids.
func (e endpoint) at(hub string) string {
	return strings.NewReplacer(
		"{site_id}", noSite, "{hub_id}", hub, "{device_id}", "1", "{member_id}", noMember,
		"{invitation_id}", noMember,
	).Replace(e.path)
}

// sent returns the body for harness.Client.Do.
func (e endpoint) sent() any {
	if e.body == "" {
		return nil
	}
	return e.body
}

func (e endpoint) ofHub() bool { return strings.Contains(e.path, "{hub_id}") }

func (e endpoint) String() string { return e.method + " " + e.path }
