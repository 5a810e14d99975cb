package portal

import (
	"crypto/subtle"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"hubcloud/domain"
)

// maxForm is the most bytes that a form may have. The longest says where a page stands in the logs
// of all its hubs, with 50 bytes each: enough for 20,000.
const maxForm = 1 << 20

// visit is one request and its answer.
type visit struct {
	p      *Portal
	w      http.ResponseWriter
	r      *http.Request
	caller Caller
	// token is that of the session, from the browser's cookie.
	token   string
	session domain.PortalSession
	// member is what the visitor is in the organization of the path.
	member domain.MemberAccess
	// hub is the organization's hub that the path names; "" for none.
	hub domain.HubID
}

// handler answers a visit. Its error is shown as a page, or told to the script that asked.
type handler func(*visit) error

// public is for pages that need no session. What changes something must come from a page of our
// own.
func (p *Portal) public(handle handler) func(http.ResponseWriter, *http.Request, Caller) {
	return func(w http.ResponseWriter, r *http.Request, caller Caller) {
		v := &visit{p: p, w: w, r: r, caller: caller}
		err := p.readForm(v)
		if err == nil {
			err = handle(v)
		}
		if err != nil {
			v.fail(err)
		}
	}
}

// signedIn is for pages of people who are signed in. Others are sent to sign in, and come back
// afterwards. What changes something must also carry the session's form token.
func (p *Portal) signedIn(handle handler) func(http.ResponseWriter, *http.Request, Caller) {
	return p.public(func(v *visit) error {
		switch err := v.recognize(); {
		case errors.Is(err, &domain.Error{Code: domain.CodeUnauthenticated}):
			if v.scripted() {
				return err
			}
			next := ""
			if v.r.Method == http.MethodGet {
				next = "?next=" + url.QueryEscape(v.r.URL.Path)
			}
			v.redirect("sign-in"+next, "")
			return nil
		case err != nil:
			return err
		}
		if v.r.Method == http.MethodPost &&
			subtle.ConstantTimeCompare(
				[]byte(v.r.PostForm.Get("form_token")), []byte(v.session.FormToken),
			) != 1 {
			return p.refuseForged()
		}
		return handle(v)
	})
}

// member is for pages of the organization in the path. Who is none of its members finds what who
// asks for none finds.
func (p *Portal) member(handle handler) func(http.ResponseWriter, *http.Request, Caller) {
	return p.signedIn(func(v *visit) error {
		member, ok := p.People.Membership(v.r.PathValue("org"), v.session.Email)
		if !ok {
			return domain.ErrOrgNotFound()
		}
		v.member = member
		return handle(v)
	})
}

// manager is for what owners and admins do.
func (p *Portal) manager(handle handler) func(http.ResponseWriter, *http.Request, Caller) {
	return p.member(func(v *visit) error {
		if !v.member.Manages() {
			return errNotManaged
		}
		return handle(v)
	})
}

// errNotManaged is the refusal of what the visitor's role does not allow.
var errNotManaged = domain.Errorf(
	domain.CodeForbidden, "that is for owners and admins of the organization; ask one of them",
)

// errNoPage is what stands where there is nothing.
var errNoPage = domain.Errorf(domain.CodeNotFound, "there is nothing at this path")

// errForged says that a form did not come from a page of the session.
var errForged = domain.Errorf(
	domain.CodeForbidden,
	"this form was not sent from a page of your session; open the page again and repeat it",
)

func (p *Portal) refuseForged() error {
	p.metrics.forged.Inc()
	return errForged
}

// readForm reads the form of what changes something, and refuses one that a page of somebody else's
// has sent.
func (p *Portal) readForm(v *visit) error {
	if v.r.Method != http.MethodPost {
		return nil
	}
	if p.origins.Check(v.r) != nil {
		return p.refuseForged()
	}
	v.r.Body = http.MaxBytesReader(v.w, v.r.Body, maxForm)
	if err := v.r.ParseForm(); err != nil {
		return domain.Errorf(domain.CodeInvalidRequest, "the form could not be read")
	}
	return nil
}

// greet finds out who visits a page that is for everybody. Nobody is no error.
func (v *visit) greet() error {
	err := v.recognize()
	if errors.Is(err, &domain.Error{Code: domain.CodeUnauthenticated}) {
		return nil
	}
	return err
}

// recognize finds out who visits.
func (v *visit) recognize() (err error) {
	cookie, err := v.r.Cookie(v.p.cookies.session())
	if err != nil {
		return domain.ErrNotSignedIn()
	}
	// A replica that is cut off does not hear that somebody was signed out, or is a member no more.
	if fresh := v.p.Freshness; fresh != nil && !fresh.Fresh() {
		if err := fresh.Confirm(v.r.Context()); err != nil {
			return err
		}
	}
	v.token = cookie.Value
	v.session, err = v.p.SignIn.Session(v.r.Context(), v.token, v.caller.At)
	return err
}

// origin is what a command of this visit brings with it: in an organization it is the member who
// acts.
func (v *visit) origin() domain.Origin {
	return domain.Origin{
		At: v.caller.At, Actor: domain.Actor{Kind: domain.ActorMember, ID: v.member.MemberID},
		RequestID: v.caller.RequestID,
	}
}

// asked gives what the page's address says under a name.
func (v *visit) asked(name string) string { return strings.TrimSpace(v.r.URL.Query().Get(name)) }

// field gives what was typed into a field of the form.
func (v *visit) field(name string) string { return strings.TrimSpace(v.r.PostForm.Get(name)) }

// root is the way from this page to /portal/: links are relative, so that the service can stand
// behind a path of a proxy.
func (v *visit) root() string {
	below, ok := strings.CutPrefix(v.r.URL.EscapedPath(), "/portal/")
	if !ok {
		return "portal/"
	}
	if depth := strings.Count(below, "/"); depth > 0 {
		return strings.Repeat("../", depth)
	}
	return "./"
}

// redirect sends the browser to a page below /portal/, which shows the notice of that name (see
// notices); empty for none.
func (v *visit) redirect(page, notice string) {
	if notice != "" {
		v.setNotice(notice)
	}
	setHeaders(v.w.Header())
	v.w.Header().Del("Content-Type")
	v.w.Header().Set("Location", v.root()+page)
	v.w.WriteHeader(http.StatusSeeOther)
}

// redirectInOrg is redirect for a page of the organization; "" is its first.
func (v *visit) redirectInOrg(page, notice string) {
	v.redirect(strings.TrimSuffix(v.member.OrgID+"/"+page, "/"), notice)
}
