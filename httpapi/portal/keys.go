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
	Shell
	Keys   []keyLine
	More   pager
	Scopes []scopeLine
	Label  string
	// Problem is what is wrong with what was typed, and Field where: label or scopes.
	Problem, Field string
	// Created is the key that was made just now, to be seen this once.
	Created, CreatedID string
	Environment        string
}

// keyLine is a key, and when it was used last: never, when that is zero.
type keyLine struct {
	domain.KeyView
	LastUsed time.Time
}

// scopeLine is a scope with what it allows, in the words of the contract.
type scopeLine struct {
	Scope   domain.Scope
	Allows  string
	Checked bool
}

var scopeMeanings = map[domain.Scope]string{
	domain.ScopeSitesRead:  "list sites and read their details",
	domain.ScopeSitesWrite: "create and rename sites",
	domain.ScopeHubsRead:   "list hubs, read details and connection status, list and read devices",
	domain.ScopeHubsWrite: "add hubs to sites, move and rename them, reset a hub's link; add, " +
		"remove, name and place devices; open and close pairing and removal windows",
	domain.ScopeHubsCommand:  "send commands and read their outcome",
	domain.ScopeEventsRead:   "read and stream events",
	domain.ScopeMembersRead:  "list members and pending invitations",
	domain.ScopeMembersWrite: "invite people, revoke invitations, change admin and member roles, remove members",
}

// keys shows the organization's API keys.
func (v *visit) keys() error { return v.showKeys(http.StatusOK, keysView{}, nil) }

func (v *visit) showKeys(status int, view keysView, checked []string) error {
	keys, ways, err := readPage(
		v,
		"keys",
		"keys",
		func(limit int, after string) (domain.Page[domain.KeyView], error) {
			return v.p.ReadModels.Keys(v.r.Context(), v.member.OrgID, limit, after)
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
	used, err := v.p.KeyUse.LastUsed(v.r.Context(), ids)
	if err != nil {
		return err
	}
	for _, key := range keys {
		view.Keys = append(view.Keys, keyLine{key, used[key.ID]})
	}
	for _, scope := range domain.AllScopes() {
		view.Scopes = append(
			view.Scopes,
			scopeLine{scope, scopeMeanings[scope], slices.Contains(checked, string(scope))},
		)
	}
	view.More, view.Environment = ways, v.p.Environment
	view.Shell = v.shell("API keys", "keys")
	v.render(status, "keys.html", view)
	return nil
}

// createKey makes a key and shows it. The answer is the page itself: what is redirected to would
// have to keep the secret for a while.
func (v *visit) createKey() error {
	view, checked := keysView{Label: v.field("label")}, v.r.PostForm["scope"]
	scopes := make([]domain.Scope, 0, len(checked))
	for _, scope := range checked {
		scopes = append(scopes, domain.Scope(scope))
	}
	var id, key string
	err := v.once(func() (err error) {
		id, key, err = v.p.Directory.CreateKey(
			v.r.Context(), v.origin(), v.member.OrgID, view.Label, scopes,
		)
		return err
	})
	if errors.Is(err, errSentBefore) {
		v.redirectInOrg("keys", "key-shown")
		return nil
	}
	if problem, ok := refusalText(err); ok {
		view.Problem, view.Field = problem, refusedField(err)
		if view.Field == "scopes" && len(scopes) == 0 {
			view.Problem = "Choose at least one scope: a key without any could do nothing."
		}
		return v.showKeys(refusedStatus(err), view, checked)
	}
	if err != nil {
		return err
	}
	return v.showKeys(http.StatusCreated, keysView{Created: key, CreatedID: id}, nil)
}

// confirmRevocation asks whether a key is to be revoked.
func (v *visit) confirmRevocation() error {
	key, err := v.p.ReadModels.Key(v.r.Context(), v.member.OrgID, v.r.PathValue("key"))
	if err != nil {
		return err
	}
	if !key.RevokedAt.IsZero() {
		return domain.ErrKeyNotFound()
	}
	v.render(http.StatusOK, "key-revoke.html", struct {
		Shell
		Key domain.KeyView
	}{v.shell("Revoke an API key", "keys"), key})
	return nil
}

// revokeKey ends a key.
func (v *visit) revokeKey() error {
	if err := v.p.Directory.RevokeKey(v.r.Context(), v.origin(), v.r.PathValue("key"), v.member.OrgID); err != nil {
		return err
	}
	v.redirectInOrg("keys", "key-revoked")
	return nil
}
