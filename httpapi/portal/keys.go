package portal

import (
	"errors"
	"net/http"
	"slices"
	"time"

	"hubcloud/domain"
)

// keysView is the page of an organization's API keys.
type keysView struct {
	Layout
	Keys   []keyRow
	More   pager
	Scopes []scopeRow
	Label  string
	// Problem is what is wrong with the form, and Field the rejected field: label or scopes.
	Problem, Field string
	// Created is a key that was created by this request, and CreatedID its id.
	Created, CreatedID string
	Environment        string
	// BaseURL is the address of the API, without its version.
	BaseURL string
}

// keyRow is an API key. LastUsed is zero if it was never used.
type keyRow struct {
	domain.KeyView
	LastUsed time.Time
}

// scopeRow is a scope with its meaning in the words of the contract.
type scopeRow struct {
	Scope   domain.Scope
	Allows  string
	Checked bool
}

// keys shows the organization's API keys.
func (req *request) keys() error { return req.showKeys(http.StatusOK, keysView{}, nil) }

// showKeys shows the page of API keys. checked are the scopes that are checked in the form.
func (req *request) showKeys(status int, view keysView, checked []string) error {
	keys, links, err := readPage(
		req,
		"keys",
		"keys",
		func(limit int, after string) (domain.Page[domain.KeyView], error) {
			return req.ReadModels.Keys(req.ctx, req.org, limit, after)
		},
		func(k domain.KeyView) string { return k.ID },
	)
	if err != nil {
		return err
	}
	ids := make([]string, 0, len(keys))
	for _, key := range keys {
		ids = append(ids, key.ID)
	}
	used, err := req.KeyUse.LastUsed(req.ctx, ids)
	if err != nil {
		return err
	}
	for _, key := range keys {
		view.Keys = append(view.Keys, keyRow{key, used[key.ID]})
	}
	for _, scope := range domain.AllScopes() {
		view.Scopes = append(
			view.Scopes,
			scopeRow{scope, scopeTexts[string(scope)], slices.Contains(checked, string(scope))},
		)
	}
	view.More, view.Environment = links, req.Environment
	view.Layout = req.layout("API keys", "developers")
	if view.BaseURL = req.PublicURL; view.Created != "" {
		view.Scripts = []string{"copy.js"}
	}
	req.render(status, "keys.html", view)
	return nil
}

// createKey creates an API key and shows it. It does not redirect: the key would have to be stored
// for the next page.
func (req *request) createKey() error {
	view, checked := keysView{Label: req.formValue("label")}, req.http.PostForm["scope"]
	scopes := make([]domain.Scope, 0, len(checked))
	for _, scope := range checked {
		scopes = append(scopes, domain.Scope(scope))
	}
	var id, key string
	err := req.submitOnce(func() (err error) {
		id, key, err = req.Directory.CreateKey(req.ctx, req.origin(), req.org, view.Label, scopes)
		return err
	})
	if errors.Is(err, errAlreadySubmitted) {
		req.redirectInOrg("keys", "key-shown")
		return nil
	}
	if problem, ok := rejectionText(err); ok {
		view.Problem, view.Field = problem, rejectedField(err)
		if view.Field == "scopes" && len(scopes) == 0 {
			view.Problem = "Choose at least one scope."
		}
		return req.showKeys(rejectionStatus(err), view, checked)
	}
	if err != nil {
		return err
	}
	return req.showKeys(http.StatusCreated, keysView{Created: key, CreatedID: id}, nil)
}

// confirmKeyRevocation asks whether to revoke an API key.
func (req *request) confirmKeyRevocation() error {
	key, err := req.ReadModels.Key(req.ctx, req.org, req.http.PathValue("key"))
	if err != nil {
		return err
	}
	if !key.RevokedAt.IsZero() {
		return domain.ErrKeyNotFound()
	}
	req.render(http.StatusOK, "key-revoke.html", struct {
		Layout
		Key domain.KeyView
	}{req.layout("Revoke API key", "developers"), key})
	return nil
}

// revokeKey revokes an API key.
func (req *request) revokeKey() error {
	err := req.Directory.RevokeKey(req.ctx, req.origin(), req.http.PathValue("key"), req.org)
	return req.finish(err, "keys", "key-revoked")
}

// scopeTexts are what the scopes of API keys allow, by scope.
var scopeTexts = map[string]string{
	"sites:read":  "list sites and read their details",
	"sites:write": "create and rename sites",
	"hubs:read":   "list hubs, read details and connection status, list and read devices",
	"hubs:write": "add hubs to sites, move and rename them, reset a hub's link; add, remove, name " +
		"and place devices; open and close pairing and removal windows",
	"hubs:command": "send commands and read their outcome",
	"events:read":  "read and stream events",
	"members:read": "list members and pending invitations",
	"members:write": "invite people, withdraw invitations, change admin and member roles, remove " +
		"members",
	"webhooks:read":  "list webhooks and read their deliveries",
	"webhooks:write": "create, change, test and delete webhooks",
	"audit:read":     "read and stream the audit log",
}
