package portal

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/shares"
)

// attemptLifetime is how long signing in at the identity provider may take.
const attemptLifetime = 15 * time.Minute

// Provider signs people in at an identity provider.
type Provider interface {
	// Issuer returns the issuer of the identities, and Name how pages call the provider.
	Issuer() string
	Name() string
	// ConfirmEvery returns how often the provider must confirm a session.
	ConfirmEvery() time.Duration
	// Answers reports whether the provider has answered last.
	Answers() bool
	// SignOutURL returns the page that ends the session at the provider; "" for none.
	SignOutURL() string
	// Begin begins an attempt, which the browser keeps, and returns the address that it goes to.
	Begin() (address string, attempt domain.SignInAttempt, err error)
	// Finish returns the person whom the provider has signed in. query is what it sent the browser
	// back with. Errors are domain.Errors whose messages may be shown.
	Finish(
		ctx context.Context, attempt domain.SignInAttempt, query url.Values,
	) (domain.ProvenPerson, error)
}

// newProviderPool returns the bound of the sign-ins that wait for the identity provider.
func newProviderPool(registry *shares.Registry) *shares.Pool {
	return shares.NewPool(registry, shares.PoolConfig{
		Name: "provider_sign_ins", What: "people sign in", Of: "network",
		Limits: shares.Limits{Total: 128, PerOrg: 16},
	})
}

// beginAtProvider sends the browser to the identity provider.
func (req *request) beginAtProvider() error {
	if req.Provider == nil {
		return errPageNotFound
	}
	next := portalPath(req.http.URL.Query().Get("next"))
	address, attempt, err := req.Provider.Begin()
	if err != nil {
		return req.rejectPerson(err, next)
	}
	attempt.Next = next
	req.keep(req.cookies.attempt(), attempt, attemptLifetime)
	setPageHeaders(req.w.Header())
	req.w.Header().Del("Content-Type")
	req.w.Header().Set("Location", address)
	req.w.WriteHeader(http.StatusSeeOther)
	return nil
}

// returnFromProvider signs in the person whom the identity provider sends back.
func (req *request) returnFromProvider() error {
	if req.Provider == nil {
		return errPageNotFound
	}
	req.w.Header().Set("Referrer-Policy", "no-referrer") // the address holds a secret
	attempt := req.popAttempt()
	// Each network is a spender of its own.
	release, err := req.atProvider.Take(shares.Spender{Org: req.info.Network.String()}, 1)
	if err != nil {
		return req.rejectPerson(err, attempt.Next)
	}
	person, err := req.Provider.Finish(req.ctx, attempt, req.http.URL.Query())
	release()
	if err != nil {
		return req.rejectPerson(err, attempt.Next)
	}
	origin := req.originOf(domain.Actor{Kind: domain.ActorService})
	account, err := req.accountOfPerson(origin, person)
	if err == nil {
		err = req.applyGroups(origin, account.Email, person.Access)
	}
	if err != nil {
		return req.rejectPerson(err, attempt.Next)
	}
	return req.beginSession(
		account, attempt.Next, req.info.At.Add(req.Provider.ConfirmEvery()),
	)
}

// popAttempt returns the attempt that the browser kept, and removes it; the zero value if there is
// none, which no answer of the provider belongs to.
func (req *request) popAttempt() domain.SignInAttempt {
	attempt, _ := decodeKept[domain.SignInAttempt](req.pop(req.cookies.attempt()))
	attempt.Next = portalPath(attempt.Next)
	return attempt
}

// rejectPerson shows the sign-in page with the reason why the person was not signed in.
func (req *request) rejectPerson(err error, next string) error {
	var shown *domain.Error
	if !errors.As(err, &shown) || req.ctx.Err() != nil {
		return err
	}
	if shown.Code == domain.CodeServiceUnavailable {
		req.metrics.unavailable.Inc()
	} else {
		req.metrics.rejected.Inc()
	}
	req.Logger.InfoContext(
		req.ctx, "person not signed in", "request_id", req.info.RequestID, "error", err,
	)
	view := req.signInView(next)
	view.Layout, view.Reason = req.layout("Sign in", ""), sentenceOf(shown.Message)
	req.render(statusOf(shown.Code), "sign-in.html", view)
	return nil
}

// accountOfPerson returns the account of a person whom the identity provider has signed in. At the
// first sign-in the account of the person's address is bound to the person. It is forbidden for
// people who have neither an account nor access, unless sign-up is open.
func (req *request) accountOfPerson(
	o domain.Origin, person domain.ProvenPerson,
) (domain.AccountState, error) {
	account, err := req.Directory.IdentifiedAccount(req.ctx, person.Identity)
	if err != nil || account.Exists() {
		return account, err
	}
	account, err = req.Directory.Account(req.ctx, person.Email)
	if err != nil {
		return domain.AccountState{}, err
	}
	members := req.People.Memberships(person.Email)
	email := account.Email
	if email == "" && len(members) > 0 {
		email = members[0].Email
	}
	if email == "" && len(person.Access) == 0 && !req.OpenSignUp {
		return domain.AccountState{}, domain.Errorf(
			domain.CodeForbidden, "%s has no access here yet; open the link of your invitation, or ask "+
				"an owner or admin for one", person.Email,
		)
	}
	// An address without memberships has nothing of the person to whom it belonged before.
	replace := len(members) == 0
	return req.Directory.BindIdentity(
		req.ctx, o, cmp.Or(email, person.Email), person.Identity, replace,
	)
}

// applyGroups makes the memberships that groups gave to an address what access says.
func (req *request) applyGroups(
	o domain.Origin, email string, access map[string]domain.Access,
) error {
	orgs := slices.Collect(maps.Keys(access))
	for _, m := range req.People.Memberships(email) {
		orgs = append(orgs, m.OrgID)
	}
	slices.Sort(orgs)
	for _, org := range slices.Compact(orgs) {
		err := req.Directory.SetGroupAccess(req.ctx, o, org, email, access[org])
		if errors.Is(err, &domain.Error{Code: domain.CodeNotFound}) {
			req.Logger.WarnContext(
				req.ctx, "a rule for groups names an unknown organization", "org_id", org,
			)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// checkProvider returns domain.ErrNotSignedIn for a session that the identity provider must confirm
// first.
func (req *request) checkProvider() error {
	switch byMail := req.session.ConfirmBy.IsZero(); {
	case byMail && req.Provider == nil,
		!byMail && req.Provider != nil && req.info.At.Before(req.session.ConfirmBy):
		return nil
	case byMail:
		account, err := req.Directory.Account(req.ctx, req.session.Email)
		if err != nil || !req.signsInAtProvider(account) {
			return err
		}
	}
	req.session, req.unconfirmed = domain.PortalSession{}, true
	return domain.ErrNotSignedIn()
}

// signsInAtProvider reports whether the person of an account signs in at the identity provider
// only, so that an end of the person's access there is one here. Owners may always sign in by mail:
// an organization must not be lost with the provider.
func (c Config) signsInAtProvider(account domain.AccountState) bool {
	return c.Provider != nil && account.Identity.Issuer == c.Provider.Issuer() &&
		!slices.ContainsFunc(
			c.People.Memberships(account.Email),
			func(m domain.MemberAccess) bool { return m.Role == domain.RoleOwner },
		)
}
