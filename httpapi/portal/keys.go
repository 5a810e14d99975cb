package portal

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strconv"
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
	keyLimitsForm
	newKey
	// CreatedID is the id of the key that was created by this request.
	CreatedID, Environment string
}

// newKey is a key with the secret that this request has made, and a call with it; mostly empty.
type newKey struct {
	Secret  string
	Example keyExample
}

// keyLimitsForm are the fields of a form with the limits of a key.
type keyLimitsForm struct {
	// Expires is the field as typed.
	Expires   string
	Sites     []siteChoice
	MoreSites bool
	// Problem is what is wrong with the form, and Field the rejected field: label, sites, expires_at
	// or scopes.
	Problem, Field string
}

// keyRow is an API key. LastUsed is zero if it was never used, and FormerUsed is when a secret was
// last used that a rotation has replaced.
type keyRow struct {
	domain.KeyView
	LastUsed, FormerUsed time.Time
	// SiteNames are the sites that the key is limited to.
	SiteNames []string
}

// scopeRow is a scope with its meaning in the words of the contract.
type scopeRow struct {
	Scope   domain.Scope
	Allows  string
	Checked bool
}

// keys shows the organization's API keys.
func (req *request) keys() error { return req.showKeys(http.StatusOK, keysView{}, nil, nil) }

// showKeys shows the page of API keys. checked are the scopes that are checked in the form, and
// sites the sites.
func (req *request) showKeys(status int, view keysView, checked, sites []string) error {
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
	if view.Keys, err = req.keyRows(keys); err != nil {
		return err
	}
	if view.Sites, view.MoreSites, err = req.siteChoices(maxSites, sites); err != nil {
		return err
	}
	for _, scope := range domain.AllScopes() {
		view.Scopes = append(
			view.Scopes,
			scopeRow{scope, scopeTexts[string(scope)], slices.Contains(checked, string(scope))},
		)
	}
	view.More, view.Environment = links, req.Environment
	view.Layout = req.layout("API keys", "developers")
	if view.Secret != "" {
		view.Scripts = []string{"copy.js"}
	}
	req.render(status, "keys.html", view)
	return nil
}

// keyRows returns rows of keys.
func (req *request) keyRows(keys []domain.KeyView) ([]keyRow, error) {
	ids, limited := make([]string, 0, len(keys)), false
	for _, key := range keys {
		if ids = append(ids, key.ID); !key.FormerUntil.IsZero() {
			ids = append(ids, domain.FormerKeyUse(key.ID))
		}
		limited = limited || key.Sites != nil
	}
	used, err := req.KeyUse.LastUsed(req.ctx, ids)
	if err != nil {
		return nil, err
	}
	names := map[string]string{}
	if limited {
		sites, err := req.allSites()
		if err != nil {
			return nil, err
		}
		names = siteNames(sites)
	}
	var rows []keyRow
	for _, key := range keys {
		row := keyRow{
			KeyView: key, LastUsed: used[key.ID], FormerUsed: used[domain.FormerKeyUse(key.ID)],
		}
		for _, site := range key.Sites {
			row.SiteNames = append(row.SiteNames, cmp.Or(names[site], site))
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// keyLimits reads the fields of a form with the limits of a key.
func (req *request) keyLimits() (limits domain.KeyLimits, err error) {
	limits.Sites = req.http.PostForm["site"]
	if typed := req.formValue("expires"); typed != "" {
		at, ok := parseClock(typed, req.zone())
		if !ok {
			return limits, domain.Errorf(domain.CodeInvalidRequest, "expires_at: must be a time")
		}
		limits.ExpiresAt = at
	}
	return limits, nil
}

// createKey creates an API key and shows it. It does not redirect: the key would have to be stored
// for the next page.
func (req *request) createKey() error {
	view, checked := keysView{Label: req.formValue("label")}, req.http.PostForm["scope"]
	view.Expires = req.formValue("expires")
	scopes := make([]domain.Scope, 0, len(checked))
	for _, scope := range checked {
		scopes = append(scopes, domain.Scope(scope))
	}
	var id, key string
	var limits domain.KeyLimits
	err := req.submitOnce(func() (err error) {
		if limits, err = req.keyLimits(); err == nil {
			id, key, err = req.Directory.CreateKey(
				req.ctx, req.origin(), req.org, view.Label, scopes, limits,
			)
		}
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
		return req.showKeys(rejectionStatus(err), view, checked, req.http.PostForm["site"])
	}
	if err != nil {
		return err
	}
	created, err := req.newKey(key, scopes, limits.Sites)
	if err != nil {
		return err
	}
	return req.showKeys(http.StatusCreated, keysView{newKey: created, CreatedID: id}, nil, nil)
}

// keyView is the page of an API key.
type keyView struct {
	Layout
	Key keyRow
	keyLimitsForm
	newKey
}

// keyPage shows an API key, which may be changed there.
func (req *request) keyPage() error { return req.showKey(http.StatusOK, keyView{}) }

// showKey shows the page of the key of the path. A view without a problem gets the key's limits.
func (req *request) showKey(status int, view keyView) error {
	key, err := req.ReadModels.Key(req.ctx, req.org, req.http.PathValue("key"))
	if err != nil {
		return err
	}
	rows, err := req.keyRows([]domain.KeyView{key})
	if err != nil {
		return err
	}
	sites := key.Sites
	if view.Problem != "" {
		sites = req.http.PostForm["site"]
	} else if !key.ExpiresAt.IsZero() {
		view.Expires = key.ExpiresAt.In(req.zone()).Format(clockLayout + ":05")
	}
	if view.Sites, view.MoreSites, err = req.siteChoices(maxSites, sites); err != nil {
		return err
	}
	view.Key, view.Layout = rows[0], req.layout("API key", "developers")
	if view.Secret != "" {
		view.Scripts = []string{"copy.js"}
	}
	req.render(status, "key.html", view)
	return nil
}

// changeKey sets the limits of an API key.
func (req *request) changeKey() error {
	key := req.http.PathValue("key")
	limits, err := req.keyLimits()
	if err == nil {
		err = req.Directory.ChangeKey(req.ctx, req.origin(), key, req.org, limits)
	}
	return req.finishForm(err, "keys", "key-changed", func(status int, problem string) error {
		return req.showKey(status, keyView{keyLimitsForm: keyLimitsForm{
			Expires: req.formValue("expires"), Problem: problem, Field: rejectedField(err),
		}})
	})
}

// rotateKey replaces the secret of an API key and shows the new one, as createKey does.
func (req *request) rotateKey() error {
	hours, err := strconv.ParseUint(req.formValue("overlap"), 10, 16)
	if err != nil {
		return domain.Errorf(domain.CodeInvalidRequest, "overlap: must be a number of hours")
	}
	var secret string
	err = req.submitOnce(func() (err error) {
		secret, err = req.Directory.RotateKey(
			req.ctx, req.origin(), req.http.PathValue("key"), req.org,
			time.Duration(hours)*time.Hour,
		)
		return err
	})
	if errors.Is(err, errAlreadySubmitted) {
		req.redirectInOrg("keys", "key-shown")
		return nil
	}
	if err != nil {
		return err
	}
	key, err := req.ReadModels.Key(req.ctx, req.org, req.http.PathValue("key"))
	if err != nil {
		return err
	}
	rotated, err := req.newKey(secret, key.Scopes, key.Sites)
	if err != nil {
		return err
	}
	return req.showKey(http.StatusOK, keyView{newKey: rotated})
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

	"credentials:read":  "list the codes of locks, without the codes themselves",
	"credentials:write": "give locks codes, change and revoke them",
}
