package portal

import (
	"context"
	"crypto/subtle"
	"errors"
	"net/http"
	"strings"

	"hubcloud/domain"
	"hubcloud/streams/shares"
)

const (
	// maxForm is the largest form in bytes, as the largest body of the API.
	maxForm = 64 << 10
	// maxOpenForm is the largest form of a browser without a session.
	maxOpenForm = 8 << 10
	// maxStreamForm is the largest form of a page's stream: it has the page's position in the log
	// of each hub, 50 bytes a hub, so that it fits 20,000 hubs. It is read for members only.
	maxStreamForm = 1 << 20
)

// request is one HTTP request and its answer.
type request struct {
	*Portal
	w    http.ResponseWriter
	http *http.Request
	// ctx is the context of http. It is a field, as in http.Request: the request lives as long.
	ctx  context.Context
	info RequestInfo
	// token is the session's, from the cookie. It is empty until loadSession has been called.
	token   string
	session domain.PortalSession
	// unconfirmed is set if the browser has a session that the identity provider must confirm first.
	unconfirmed bool
	// member is the user's membership in the organization of the path, and org the organization's
	// id. Both are zero on other pages.
	member domain.MemberAccess
	org    string
	// hub and device are the hub and the device of the path; zero if the path names none.
	hub    domain.HubID
	device int64
	// hubTitle and hubSite are the names of the hub and of its site, for a notice; mostly empty.
	hubTitle, hubSite string
}

func (p *Portal) newRequest(w http.ResponseWriter, r *http.Request, info RequestInfo) *request {
	return &request{Portal: p, w: w, http: r, ctx: r.Context(), info: info}
}

// handler answers a request. A returned error is shown as a page, or as JSON if a script asked.
type handler func(*request) error

// page wraps all pages. A POST must come from a page of the portal. Its form is not read.
func (p *Portal) page(handle handler) routeHandler {
	return func(w http.ResponseWriter, r *http.Request, info RequestInfo) {
		req := p.newRequest(w, r, info)
		var err error
		if r.Method == http.MethodPost && p.origins.Check(r) != nil {
			err = p.rejectForgedForm()
		} else {
			err = handle(req)
		}
		if err != nil {
			req.writeError(err)
		}
	}
}

// public wraps a page that needs no session.
func (p *Portal) public(handle handler) routeHandler {
	return p.page(func(req *request) error {
		if err := req.readForm(maxOpenForm); err != nil {
			return err
		}
		return handle(req)
	})
}

// signedIn wraps a page that needs a session. Without one the browser is redirected to sign in, and
// returns to the page afterwards. A POST must also carry the session's form token.
func (p *Portal) signedIn(handle handler) routeHandler {
	return p.page(func(req *request) error {
		switch err := req.loadSession(); {
		case errors.Is(err, &domain.Error{Code: domain.CodeUnauthenticated}):
			if req.fromScript() {
				return err
			}
			_ = req.readForm(maxOpenForm) // a larger one is not kept
			req.askToSignIn()
			return nil
		case err != nil:
			return err
		}
		if err := req.readOwnForm(); err != nil {
			return err
		}
		if req.http.Method == http.MethodPost && !req.hasFormToken() {
			return req.rejectOldForm()
		}
		return handle(req)
	})
}

// rejectOldForm answers a form whose token is not the session's. A form of the browser's previous
// session is kept, and the page links to the form's page.
func (req *request) rejectOldForm() error {
	err := req.rejectForgedForm()
	sameOrigin := req.http.Header.Get("Sec-Fetch-Site") == "same-origin"
	page := portalPath("/portal/" + req.formPage())
	if req.fromScript() || !sameOrigin || req.formValue("form_token") == "" || page == "" {
		return err
	}
	req.keepDraft()
	failure := failureOf(err)
	failure.Title = "Your change was not saved"
	failure.Message = "You signed in again after the page was loaded. Open the form again: what you " +
		"typed is kept."
	failure.Form = strings.TrimPrefix(page, "/portal/")
	req.writeFailure(failure)
	return nil
}

// hasFormToken reports whether the form carries the session's form token.
func (req *request) hasFormToken() bool {
	sent := unmaskToken(req.http.PostForm.Get("form_token"))
	return subtle.ConstantTimeCompare(sent, []byte(req.session.FormToken)) == 1
}

// member wraps a page of the organization in the path. Non-members get the same 404 as for an
// unknown organization.
func (p *Portal) member(handle handler) routeHandler {
	return p.signedIn(func(req *request) error {
		member, ok := p.People.Membership(req.http.PathValue("org"), req.session.Email)
		if !ok {
			return domain.ErrOrgNotFound()
		}
		req.member, req.org = member, member.OrgID
		return handle(req)
	})
}

// manager wraps a page for owners and admins of the organization.
func (p *Portal) manager(handle handler) routeHandler {
	return p.member(func(req *request) error {
		if !req.member.Manages() {
			return errManagersOnly
		}
		return handle(req)
	})
}

var (
	errManagersOnly = domain.Errorf(
		domain.CodeForbidden, "only owners and admins of the organization can do this",
	)
	errPageNotFound = domain.Errorf(domain.CodeNotFound, "there is no page at this address")
	errForgedForm   = domain.Errorf(
		domain.CodeForbidden, "this form was not sent from a page of your session; open the page "+
			"again and repeat it",
	)
)

func (p *Portal) rejectForgedForm() error {
	p.metrics.forged.Inc()
	return errForgedForm
}

// readForm parses the form of a POST, of at most that many bytes.
func (req *request) readForm(most int64) error {
	if req.http.Method != http.MethodPost {
		return nil
	}
	req.http.Body = http.MaxBytesReader(req.w, req.http.Body, most)
	if err := req.http.ParseForm(); err != nil {
		return domain.Errorf(domain.CodeInvalidRequest, "the form could not be read")
	}
	return nil
}

// readOwnForm is readForm for a browser with a session. While a form that is larger than maxForm is
// read, its memory counts on the share of the member that sends it.
func (req *request) readOwnForm() error {
	size := req.http.ContentLength
	if size >= 0 && size <= maxForm || !strings.HasSuffix(req.http.URL.Path, "/stream") {
		return req.readForm(maxForm)
	}
	member, ok := req.People.Membership(req.http.PathValue("org"), req.session.Email)
	if !ok {
		return domain.ErrOrgNotFound()
	}
	release, err := req.forms.Take(
		shares.Spender{Org: member.OrgID, ID: member.MemberID}, maxStreamForm,
	)
	if err != nil {
		return err
	}
	defer release()
	return req.readForm(maxStreamForm)
}

// loadOptionalSession loads the session if the browser has a valid one.
func (req *request) loadOptionalSession() error {
	err := req.loadSession()
	if errors.Is(err, &domain.Error{Code: domain.CodeUnauthenticated}) {
		return nil
	}
	return err
}

// loadSession sets token and session from the cookie. Without a valid session it returns
// domain.ErrNotSignedIn.
func (req *request) loadSession() (err error) {
	cookie, err := req.http.Cookie(req.cookies.session())
	if err != nil {
		return domain.ErrNotSignedIn()
	}
	// A replica that is cut off does not see sign-outs and removed members.
	if fresh := req.Freshness; fresh != nil && !fresh.Fresh() {
		if err := fresh.Confirm(req.ctx); err != nil {
			return err
		}
	}
	req.token = cookie.Value
	if req.session, err = req.SignIn.Session(req.ctx, req.token, req.info.At); err != nil {
		return err
	}
	return req.checkProvider()
}

// spender returns the member whose shares the request uses.
func (req *request) spender() shares.Spender {
	return shares.Spender{Org: req.member.OrgID, ID: req.member.MemberID}
}

// origin returns the origin of changes by this request: the member, at the time of the request.
func (req *request) origin() domain.Origin {
	return req.originOf(domain.Actor{Kind: domain.ActorMember, ID: req.member.MemberID})
}

// originOf returns the origin of changes that this request makes for an actor.
func (req *request) originOf(actor domain.Actor) domain.Origin {
	return domain.Origin{
		At: req.info.At, Actor: actor, RequestID: req.info.RequestID, Address: req.info.Address,
	}
}

// queryValue returns a parameter of the page's address, without surrounding spaces.
func (req *request) queryValue(name string) string {
	return strings.TrimSpace(req.http.URL.Query().Get(name))
}

// formValue returns a field of the form, without surrounding spaces.
func (req *request) formValue(name string) string {
	return strings.TrimSpace(req.http.PostForm.Get(name))
}

// root returns the relative path from this page to /portal/. Links are relative so that the service
// can run under a path of a proxy.
func (req *request) root() string {
	below, ok := strings.CutPrefix(req.http.URL.EscapedPath(), "/portal/")
	if !ok {
		return "portal/"
	}
	if depth := strings.Count(below, "/"); depth > 0 {
		return strings.Repeat("../", depth)
	}
	return "./"
}

// redirect sends the browser to a page below /portal/, which shows the notice of that name (see
// notices); "" shows none.
func (req *request) redirect(page, notice string) {
	if notice != "" {
		req.setNotice(notice)
	}
	setPageHeaders(req.w.Header())
	req.w.Header().Del("Content-Type")
	req.w.Header().Set("Location", req.root()+page)
	req.w.WriteHeader(http.StatusSeeOther)
}

// redirectInOrg is redirect for a page of the organization; "" is its dashboard.
func (req *request) redirectInOrg(page, notice string) {
	req.redirect(strings.TrimSuffix(req.org+"/"+page, "/"), notice)
}
