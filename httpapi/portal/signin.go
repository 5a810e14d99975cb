package portal

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/shares"
)

const (
	// linkLifetime is how long a mailed link can be used.
	linkLifetime = 15 * time.Minute
	// SessionLifetime is how long a session lasts.
	SessionLifetime = 30 * 24 * time.Hour
	// linksPerNetwork is how many links a network may request in an hour on this replica, all of
	// them at once. linksPerAddress is how many may be requested for one address in an hour, on all
	// replicas together, half of them at once.
	linksPerNetwork, linksPerAddress = 20, 10
)

// newNetworkLimiter returns the limiter of requests for links per network on this replica.
func newNetworkLimiter(
	registry *shares.Registry, perHour int, now time.Time,
) *shares.Rate[netip.Prefix] {
	return shares.NewRate[netip.Prefix](registry, shares.Hourly("sign_in_links", perHour), now)
}

// home redirects to the page that a person most likely wants.
func (req *request) home() error {
	if err := req.loadOptionalSession(); err != nil {
		return err
	}
	if req.session.Email == "" {
		req.redirect("sign-in", "")
		return nil
	}
	req.redirect(req.landingPage(req.session.Email), "")
	return nil
}

// signInView is the page that asks for an address, or confirms that a link was requested.
type signInView struct {
	Layout
	Address, Next string
	// Problem is what is wrong with the address.
	Problem string
	// Sent reports whether a link was requested.
	Sent bool
	// OpenSignUp reports whether every address gets a link.
	OpenSignUp bool
	// Onward is Next relative to /portal/; "" for none.
	Onward string
	// Provider is the identity provider; nil for none.
	Provider Provider
	// Reason is why the identity provider, or what it told, did not sign the person in.
	Reason string
	// SignOut is the page that ends the session at the identity provider; "" for none.
	SignOut string
	// Plain reports whether the page was loaded over plain HTTP, so that the browser will not store
	// the session cookie.
	Plain bool
}

// signInPage shows the form that asks for an address.
func (req *request) signInPage() error {
	if err := req.loadOptionalSession(); err != nil {
		return err
	}
	query := req.http.URL.Query()
	view := req.signInView(portalPath(query.Get("next")))
	view.Layout, view.Address = req.layout("Sign in", ""), query.Get("email")
	if req.Provider != nil && query.Has(signedOutParameter) {
		view.SignOut = req.Provider.SignOutURL()
	}
	req.render(http.StatusOK, "sign-in.html", view)
	return nil
}

// signInView returns the sign-in page without its Layout.
func (req *request) signInView(next string) signInView {
	return signInView{
		OpenSignUp: req.OpenSignUp, Provider: req.Provider,
		Next: next, Onward: strings.TrimPrefix(next, "/portal/"),
		Plain: req.cookies.secure && strings.HasPrefix(req.PublicURL, "http://"),
	}
}

// requestLink queues a mail with a link. It does the same work for every address, so that its
// duration does not reveal whether an account exists: that is looked up when the mail is sent.
func (req *request) requestLink() error {
	view := req.signInView(portalPath(req.formValue("next")))
	view.Address = domain.PastedEmail(req.formValue("email"))
	email, err := domain.CleanEmail("email", view.Address)
	if err != nil {
		problem, _ := rejectionText(err)
		req.rejectLink(http.StatusBadRequest, view, problem)
		return nil
	}
	if allowed := req.networks.Take(req.info.Network, req.info.At); !allowed.Granted {
		req.rejectForRate(
			view, allowed.Next, "Too many links were requested from your network. Try again in {time}.",
		)
		return nil
	}
	wait, err := req.SignIn.Allow(
		req.ctx, "link "+domain.MailboxOf(email), (linksPerAddress+1)/2,
		linksPerAddress, req.info.At,
	)
	if err != nil {
		return err
	}
	if wait > 0 {
		req.rejectForRate(
			view, wait,
			"Too many links were requested for this address. Use the newest email, or try again in {time}.",
		)
		return nil
	}
	link := domain.SignInLink{
		Email:     email,
		Next:      view.Next,
		CreatedAt: req.info.At,
		ExpiresAt: req.info.At.Add(linkLifetime),
	}
	token, err := req.SignIn.NewLink(req.ctx, link)
	if err != nil {
		return err
	}
	if err := req.Mails.SendSignIn(
		req.ctx, email, req.linkAddress(token), link.ExpiresAt,
	); err != nil {
		return err
	}
	req.metrics.requested.Inc()
	view.Address, view.Sent = email, true
	view.Layout = req.layout("Check your email", "")
	req.render(http.StatusOK, "sign-in.html", view)
	return nil
}

// rejectLink shows the form again, with what was typed and what is wrong.
func (req *request) rejectLink(status int, view signInView, problem string) {
	view.Problem, view.Layout = problem, req.layout("Sign in", "")
	req.render(status, "sign-in.html", view)
}

// rejectForRate answers that too many links were requested. pattern has {time}, how long to wait.
func (req *request) rejectForRate(view signInView, wait time.Duration, pattern string) {
	req.metrics.limited.Inc()
	req.w.Header().Set("Retry-After", strconv.Itoa(int(wait/time.Second)+1))
	req.rejectLink(
		http.StatusTooManyRequests, view,
		fill(
			pattern, "time", counted(int((wait+time.Minute-1)/time.Minute), "minute"),
		),
	)
}

// linkAddress returns the URL of a link.
func (p *Portal) linkAddress(token string) string {
	return p.PublicURL + "/portal/sign-in/" + token
}

// openLink shows a button that signs in. A GET alone must not use the link up, because mail
// scanners and prefetching browsers send one. The button also shows which account the link signs in
// to. A link with AtOnce signs in without the button.
func (req *request) openLink() error {
	req.w.Header().Set("Referrer-Policy", "no-referrer") // the address holds a secret
	switch {
	case req.http.Method == http.MethodHead:
		setPageHeaders(req.w.Header())
		req.w.WriteHeader(http.StatusOK)
		return nil
	case isPrefetch(req.http.Header):
		setPageHeaders(req.w.Header())
		req.w.WriteHeader(http.StatusServiceUnavailable)
		return nil
	}
	link, err := req.SignIn.Link(req.ctx, req.http.PathValue("token"), req.info.At)
	if err != nil {
		return req.writeLinkError(err)
	}
	if link.AtOnce {
		return req.useLink()
	}
	if err := req.loadOptionalSession(); err != nil {
		return err
	}
	req.render(http.StatusOK, "link.html", struct {
		Layout
		Link domain.SignInLink
	}{req.layout("Sign in", ""), link})
	return nil
}

// useLink signs in.
func (req *request) useLink() error {
	link, err := req.SignIn.UseLink(req.ctx, req.http.PathValue("token"), req.info.At)
	if err != nil {
		return req.writeLinkError(err)
	}
	account, err := req.accountOf(
		req.ctx,
		req.originOf(domain.Actor{Kind: domain.ActorService}),
		link,
	)
	if err != nil {
		return req.writeLinkError(err)
	}
	return req.beginSession(account, portalPath(link.Next), time.Time{})
}

// beginSession begins the session of an account, and redirects to the page next, "" for the one
// that the person most likely wants. confirmBy is when the identity provider must confirm the
// session; zero for a sign-in by mail.
func (req *request) beginSession(
	account domain.AccountState, next string, confirmBy time.Time,
) error {
	// End the browser's previous session: an attacker may have planted its token.
	if cookie, err := req.http.Cookie(req.cookies.session()); err == nil {
		if err := req.SignIn.End(req.ctx, cookie.Value); err != nil {
			return err
		}
	}
	req.session = domain.PortalSession{
		AccountID: account.ID, Email: account.Email, CreatedAt: req.info.At,
		ExpiresAt: req.info.At.Add(SessionLifetime), ConfirmBy: confirmBy, FormToken: rand.Text(),
	}
	token, err := req.SignIn.Begin(req.ctx, req.session)
	if err != nil {
		return err
	}
	req.metrics.signedIn.Inc()
	http.SetCookie(req.w, req.cookies.make(req.cookies.session(), token, SessionLifetime))
	page := strings.TrimPrefix(next, "/portal/")
	if page == "" {
		page = req.landingPage(account.Email)
	}
	req.redirect(page, "")
	return nil
}

// writeLinkError answers a link that cannot be used.
func (req *request) writeLinkError(err error) error {
	if !errors.Is(err, &domain.Error{Code: domain.CodeNotFound}) {
		return err
	}
	req.metrics.expired.Inc()
	req.render(
		http.StatusGone, "link-over.html",
		struct{ Layout }{req.layout("This link no longer works", "")},
	)
	return nil
}

// SignInAddress returns the address that a requested link is mailed to: the address of the account,
// or of a membership that is older than accounts, or email itself if sign-up is open; "" if no link
// may be sent, as to people who sign in at the identity provider. A link must never go to another
// spelling of a stored address: that may be another person's mailbox.
func (c Config) SignInAddress(ctx context.Context, email string) (string, error) {
	account, err := c.Directory.Account(ctx, email)
	if err != nil {
		return "", err
	}
	if c.signsInAtProvider(account) {
		return "", nil
	}
	if account.Exists() {
		return account.Email, nil
	}
	if members := c.People.Memberships(email); len(members) > 0 {
		return members[0].Email, nil
	}
	if c.OpenSignUp {
		return email, nil
	}
	return "", nil
}

// accountOf returns the account that a link signs in to, and creates it if the person has none. A
// link that was mailed to another spelling of the account's address, because the account was
// created after the link, is domain.ErrSignInLink, and so is a link of a person who has signed in at
// the identity provider since.
func (p *Portal) accountOf(
	ctx context.Context, o domain.Origin, link domain.SignInLink,
) (domain.AccountState, error) {
	account, err := p.Directory.Account(ctx, link.Email)
	if err != nil {
		return domain.AccountState{}, err
	}
	if account.Exists() {
		if p.signsInAtProvider(account) ||
			account.Email != link.Email && account.CreatedAt.After(link.CreatedAt) {
			return domain.AccountState{}, domain.ErrSignInLink()
		}
		return account, nil
	}
	stored, err := p.SignInAddress(ctx, link.Email)
	if err != nil {
		return domain.AccountState{}, err
	}
	if stored == "" {
		return domain.AccountState{}, domain.ErrSignInLink()
	}
	account, err = p.Directory.EnsureAccount(ctx, o, stored)
	if err == nil && account.Email != stored { // created concurrently with another spelling
		return domain.AccountState{}, domain.ErrSignInLink()
	}
	return account, err
}

// landingPage returns the page after signing in, relative to /portal/, for a person who asked for
// no other: the only organization, or the list of organizations.
func (p *Portal) landingPage(email string) string {
	if all := p.People.Memberships(email); len(all) == 1 {
		return all[0].OrgID
	}
	return "organizations"
}

// signedOutParameter is the parameter of the sign-in page for people whose session at the identity
// provider goes on.
const signedOutParameter = "signed-out"

// signOut ends the session.
func (req *request) signOut() error {
	if err := req.SignIn.End(req.ctx, req.token); err != nil {
		return err
	}
	req.metrics.signedOut.Inc()
	http.SetCookie(req.w, req.cookies.expire(req.cookies.session()))
	page := "sign-in"
	if !req.session.ConfirmBy.IsZero() {
		page += "?" + signedOutParameter
	}
	req.redirect(page, "signed-out")
	return nil
}

// maxNext is the longest address in bytes that signing in returns to.
const maxNext = 1000

// portalPath returns next, with its query encoded anew, if it is the address of a page of the
// portal, and "" otherwise, so that signing in cannot redirect to another site. It accepts only
// path segments of letters, digits and dashes, which no browser can read as another host or as a
// way out of /portal/.
func portalPath(next string) string {
	page, err := url.Parse(next)
	if err != nil || page.IsAbs() || page.Host != "" || page.Opaque != "" || page.User != nil ||
		page.Fragment != "" || len(next) > maxNext {
		return ""
	}
	query, err := url.ParseQuery(page.RawQuery)
	if err != nil {
		return ""
	}
	path, _, _ := strings.Cut(next, "?")
	below, ok := strings.CutPrefix(page.Path, "/portal/")
	if !ok || path != page.Path || below == "" {
		return ""
	}
	for _, segment := range strings.Split(below, "/") {
		if segment == "" || segment == "." || segment == ".." ||
			strings.ContainsFunc(segment, func(r rune) bool {
				return !(r == '-' || '0' <= r && r <= '9' ||
					'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z')
			}) {
			return ""
		}
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return path
}
