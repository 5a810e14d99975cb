package portal

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"hubcloud/domain"
	"hubcloud/httpapi/ratelimit"
)

const (
	// linkLife is how long the link of a mail signs in.
	linkLife = 15 * time.Minute
	// SessionLife is how long a person stays signed in.
	SessionLife = 30 * 24 * time.Hour
	// DefaultLinksPerNetwork and DefaultLinksPerAddress are how many links may be asked for within
	// an hour: from a network, all at once, and for one address, half of them at once.
	DefaultLinksPerNetwork, DefaultLinksPerAddress = 20, 10
)

// newNetworkLimits bounds what somebody can have mailed to others. What goes to one address is
// bounded over all replicas, whether or not it has an account.
func newNetworkLimits(perHour int, now time.Time) *ratelimit.Limiter[netip.Prefix] {
	return ratelimit.New[netip.Prefix](float64(perHour)/3600, perHour, now)
}

// home sends to where most people go: those who are not signed in to where they can, others to
// their organization.
func (v *visit) home() error {
	if err := v.greet(); err != nil {
		return err
	}
	if v.session.Email == "" {
		v.redirect("sign-in", "")
		return nil
	}
	v.redirect(v.p.firstPage(v.session.Email), "")
	return nil
}

// signInView is the page that asks for an address, and says that a mail is on its way.
type signInView struct {
	Shell
	Address, Next string
	// Problem is what is wrong with the address.
	Problem string
	// Sent says that a link was asked for.
	Sent bool
	// OpenSignUp says that any address gets a link.
	OpenSignUp bool
	// Onward is where Next is, below /portal/; empty for none.
	Onward string
	// Plain says that the page came without TLS, so that the browser keeps no session.
	Plain bool
}

// signInPage asks for an address.
func (v *visit) signInPage() error {
	if err := v.greet(); err != nil {
		return err
	}
	query := v.r.URL.Query()
	view := signInView{
		Shell:      v.shell("Sign in", ""),
		OpenSignUp: v.p.OpenSignUp,
		Address:    query.Get("email"),
		Next:       ownPage(query.Get("next")),
	}
	view.Onward = strings.TrimPrefix(view.Next, "/portal/")
	view.Plain = v.p.cookies.secure && strings.HasPrefix(v.p.PublicURL, "http://")
	v.render(http.StatusOK, "sign-in.html", view)
	return nil
}

// askForLink has a link mailed. It does the same and takes as long whether or not the address has
// an account: that is looked up when the mail goes out.
func (v *visit) askForLink() error {
	view := signInView{
		OpenSignUp: v.p.OpenSignUp,
		Address:    v.field("email"),
		Next:       ownPage(v.field("next")),
	}
	email, err := domain.CleanEmail("email", view.Address)
	if err != nil {
		problem, _ := refusalText(err)
		v.refuseLink(http.StatusBadRequest, view, problem)
		return nil
	}
	if allowed := v.p.networks.Take(v.caller.Network, v.caller.At); !allowed.Granted {
		v.tooMany(
			view, allowed.Next, "Too many links were asked for from your network. Try again in %s.",
		)
		return nil
	}
	wait, err := v.p.SignIn.Allow(
		v.r.Context(), "link "+domain.MailboxOf(email), (v.p.LinksPerAddress+1)/2,
		v.p.LinksPerAddress, v.caller.At,
	)
	if err != nil {
		return err
	}
	if wait > 0 {
		v.tooMany(
			view, wait,
			"Several links were asked for with this address: look for the newest mail, or try again in %s.",
		)
		return nil
	}
	link := domain.SignInLink{
		Email:     email,
		Next:      view.Next,
		CreatedAt: v.caller.At,
		ExpiresAt: v.caller.At.Add(linkLife),
	}
	token, err := v.p.SignIn.NewLink(v.r.Context(), link)
	if err != nil {
		return err
	}
	if err := v.p.Mails.SendSignIn(v.r.Context(), email, v.p.linkAddress(token), link.ExpiresAt); err != nil {
		return err
	}
	v.p.metrics.asked.Inc()
	view.Address, view.Sent = email, true
	view.Shell = v.shell("Look into your mail", "")
	v.render(http.StatusOK, "sign-in.html", view)
	return nil
}

// refuseLink shows the form again, with what was typed and what is wrong.
func (v *visit) refuseLink(status int, view signInView, problem string) {
	view.Problem, view.Shell = problem, v.shell("Sign in", "")
	v.render(status, "sign-in.html", view)
}

// tooMany says for how long no more links can be asked for; text has a place for that.
func (v *visit) tooMany(view signInView, wait time.Duration, text string) {
	v.p.metrics.limited.Inc()
	v.w.Header().Set("Retry-After", strconv.Itoa(int(wait/time.Second)+1))
	v.refuseLink(
		http.StatusTooManyRequests, view,
		fmt.Sprintf(text, count(int((wait+time.Minute-1)/time.Minute), "minute")),
	)
}

// linkAddress is where a link leads.
func (p *Portal) linkAddress(token string) string {
	return p.PublicURL + "/portal/sign-in/" + token
}

// openLink shows a button that signs in: what looks into mails on its way, and a browser that
// fetches ahead, uses up no link, and nobody is signed in by somebody else's link without seeing
// whose it is. A link that says so signs in at once.
func (v *visit) openLink() error {
	v.w.Header().Set("Referrer-Policy", "no-referrer") // the address holds a secret
	switch {
	case v.r.Method == http.MethodHead:
		setHeaders(v.w.Header())
		v.w.WriteHeader(http.StatusOK)
		return nil
	case fetchesAhead(v.r.Header):
		setHeaders(v.w.Header())
		v.w.WriteHeader(http.StatusServiceUnavailable)
		return nil
	}
	link, err := v.p.SignIn.Link(v.r.Context(), v.r.PathValue("token"), v.caller.At)
	if err != nil {
		return v.noLink(err)
	}
	if link.AtOnce {
		return v.useLink()
	}
	if err := v.greet(); err != nil {
		return err
	}
	v.render(http.StatusOK, "link.html", struct {
		Shell
		Link domain.SignInLink
	}{v.shell("Sign in", ""), link})
	return nil
}

// useLink signs in.
func (v *visit) useLink() error {
	ctx := v.r.Context()
	link, err := v.p.SignIn.TakeLink(ctx, v.r.PathValue("token"), v.caller.At)
	if err != nil {
		return v.noLink(err)
	}
	account, err := v.p.accountOf(
		ctx,
		domain.Origin{
			At:        v.caller.At,
			Actor:     domain.Actor{Kind: domain.ActorService},
			RequestID: v.caller.RequestID,
		},
		link,
	)
	if err != nil {
		return v.noLink(err)
	}
	// Another session of this browser ends: its token may be known to whoever began it.
	if cookie, err := v.r.Cookie(v.p.cookies.session()); err == nil {
		if err := v.p.SignIn.End(ctx, cookie.Value); err != nil {
			return err
		}
	}
	v.session = domain.PortalSession{
		AccountID: account.ID, Email: account.Email, CreatedAt: v.caller.At,
		ExpiresAt: v.caller.At.Add(SessionLife), FormToken: rand.Text(),
	}
	token, err := v.p.SignIn.Begin(ctx, v.session)
	if err != nil {
		return err
	}
	v.p.metrics.signedIn.Inc()
	http.SetCookie(v.w, v.p.cookies.make(v.p.cookies.session(), token, SessionLife))
	next := strings.TrimPrefix(ownPage(link.Next), "/portal/")
	if next == "" {
		next = v.p.firstPage(account.Email)
	}
	v.redirect(next, "")
	return nil
}

// noLink answers a link that signs nobody in.
func (v *visit) noLink(err error) error {
	if !errors.Is(err, &domain.Error{Code: domain.CodeNotFound}) {
		return err
	}
	v.p.metrics.expired.Inc()
	v.render(
		http.StatusGone, "link-over.html",
		struct{ Shell }{v.shell("This link does not work any more", "")},
	)
	return nil
}

// SignInAddress returns the address that a link asked for with an address is mailed to, "" when
// there is none: the one stored with the account, or with a membership that is older than accounts,
// and the address itself where anybody may sign up. A link must never go to another spelling of a
// stored address: that can be another person's mailbox.
func (p *Portal) SignInAddress(ctx context.Context, email string) (string, error) {
	account, err := p.Directory.Account(ctx, email)
	if err != nil {
		return "", err
	}
	if account.Exists() {
		return account.Email, nil
	}
	if members := p.People.Memberships(email); len(members) > 0 {
		return members[0].Email, nil
	}
	if p.OpenSignUp {
		return email, nil
	}
	return "", nil
}

// accountOf returns the account that a link signs in to, and makes the one of somebody who has
// none. A link whose mail went to another address than the account's, because the account was made
// after the link, signs in to nothing.
func (p *Portal) accountOf(
	ctx context.Context, o domain.Origin, link domain.SignInLink,
) (domain.AccountState, error) {
	account, err := p.Directory.Account(ctx, link.Email)
	if err != nil {
		return domain.AccountState{}, err
	}
	if account.Exists() {
		if account.Email != link.Email && account.CreatedAt.After(link.CreatedAt) {
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
	if err == nil && account.Email != stored { // made by somebody else meanwhile
		return domain.AccountState{}, domain.ErrSignInLink()
	}
	return account, err
}

// firstPage is where a person goes who wanted no page in particular.
func (p *Portal) firstPage(email string) string {
	if all := p.People.Memberships(email); len(all) == 1 {
		return all[0].OrgID
	}
	return "organizations"
}

// signOut ends the session.
func (v *visit) signOut() error {
	if err := v.p.SignIn.End(v.r.Context(), v.token); err != nil {
		return err
	}
	v.p.metrics.signedOut.Inc()
	http.SetCookie(v.w, v.p.cookies.end(v.p.cookies.session()))
	v.redirect("sign-in", "signed-out")
	return nil
}

// ownPage gives back the path of a page of the portal, and nothing for all else: nobody is sent
// elsewhere from here. What a browser might read as another host, and what leads out of the portal
// again, is none.
func ownPage(next string) string {
	page, err := url.Parse(next)
	if err != nil || page.IsAbs() || page.Host != "" || page.Opaque != "" || page.User != nil ||
		page.RawQuery != "" ||
		page.Fragment != "" {
		return ""
	}
	below, ok := strings.CutPrefix(page.Path, "/portal/")
	if !ok || next != page.Path || below == "" {
		return ""
	}
	for _, segment := range strings.Split(below, "/") {
		if segment == "" || segment == "." || segment == ".." ||
			strings.ContainsFunc(segment, func(r rune) bool {
				return !(r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z')
			}) {
			return ""
		}
	}
	return next
}
