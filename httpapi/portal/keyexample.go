package portal

import (
	"encoding/json"
	"slices"
	"strings"

	"hubcloud/domain"
)

// keyExample is a call within the scopes of an API key, for a terminal. It changes nothing, unless
// Note says so or what must be filled in.
type keyExample struct{ Command, Note string }

// exampleCalls are calls within a scope, those first that only read. Their capitals are filled in by the
// person; SITE, HUB and NAME by keyExampleOf, which leaves a call out for which there is none.
var exampleCalls = []struct {
	scope                    domain.Scope
	method, path, body, note string
}{
	{domain.ScopeHubsRead, "", "/hubs", "", ""},
	{domain.ScopeSitesRead, "", "/sites", "", ""},
	{domain.ScopeEventsRead, "", "/events?last=10", "", ""},
	{domain.ScopeMembersRead, "", "/members", "", ""},
	{domain.ScopeWebhooksRead, "", "/webhooks", "", ""},
	{domain.ScopeAuditRead, "", "/audit", "", ""},
	{domain.ScopeSitesWrite, "PATCH", "/sites/SITE", `{"name":NAME}`, "It leaves the site's name as it is."},
	{domain.ScopeHubsWrite, "PATCH", "/hubs/HUB", `{"name":NAME}`, "It leaves the hub's name as it is."},
	{domain.ScopeSitesWrite, "POST", "/sites", `{"name":"First site"}`, "It creates a site."},
	{
		domain.ScopeHubsCommand, "POST", "/hubs/HUB-ID/devices/DEVICE-ID/commands",
		`{"key":"switch","value":true}`, "Put in a hub and one of its devices that has a switch.",
	},
	{
		domain.ScopeWebhooksWrite, "POST", "/webhooks", `{"url":"https://ADDRESS"}`,
		"Put in an address that takes events.",
	},
	{domain.ScopeMembersWrite, "POST", "/invitations", `{"email":"ADDRESS"}`, "Put in whom to invite."},
	{domain.ScopeHubsWrite, "POST", "/hubs", `{"serial":"SERIAL","site_id":"SITE-ID"}`, "Put in a hub's serial and a site."},
}

// newKey returns a key that was just made, limited to sites unless they are empty, with an example.
func (req *request) newKey(key string, scopes []domain.Scope, only []string) (newKey, error) {
	reach := domain.Reach{OrgID: req.org}
	if len(only) > 0 {
		reach.Sites = only
	}
	sites, err := req.ReadModels.Sites(req.ctx, reach, 1, "")
	if err != nil {
		return newKey{}, err
	}
	hubs, err := req.ReadModels.Hubs(req.ctx, reach, nil, 1, "")
	if err != nil {
		return newKey{}, err
	}
	for _, call := range exampleCalls {
		var name any
		switch {
		case !slices.Contains(scopes, call.scope):
			continue
		case strings.HasSuffix(call.path, "/SITE"):
			if len(sites.Data) == 0 {
				continue
			}
			call.path, name = "/sites/"+sites.Data[0].ID, sites.Data[0].Name
		case strings.HasSuffix(call.path, "/HUB"):
			if len(hubs.Data) == 0 {
				continue
			}
			call.path, name = "/hubs/"+string(hubs.Data[0].ID), hubs.Data[0].Name
		}
		line := []string{"curl"}
		if call.method != "" {
			line = append(line, "-X", call.method)
		}
		line = append(line, "-H", shellQuoted("Authorization: Bearer "+key))
		if call.body != "" {
			quoted, _ := json.Marshal(name) // a text or nil always marshals
			body := strings.Replace(call.body, "NAME", string(quoted), 1)
			line = append(line, "-H", "'Content-Type: application/json'", "-d", shellQuoted(body))
		}
		line = append(line, shellQuoted(req.PublicURL+"/v1"+call.path))
		return newKey{key, keyExample{strings.Join(line, " "), call.note}}, nil
	}
	return newKey{Secret: key}, nil // each scope has a call
}

// shellQuoted returns a text as one word of a shell.
func shellQuoted(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
