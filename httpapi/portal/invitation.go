package portal

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"hubcloud/domain"
)

// invitationView is the page of an invitation.
type invitationView struct {
	Layout
	// Outcome is joined, already, expired, unknown or failed.
	Outcome string
	Title   string
	OrgName string
	// Account is the address that joined.
	Account string
	// OrgID is the organization if the browser is signed in with that address; otherwise "".
	OrgID string
	// Next is the address of the organization's page, for signing in.
	Next   string
	Access domain.Access
	// Link reports whether the link may still sign in.
	Link bool
}

// acceptInvitation accepts the invitation whose link was opened.
func (req *request) acceptInvitation() error {
	req.w.Header().Set("Referrer-Policy", "no-referrer") // the address holds a secret
	switch {
	case req.http.Method == http.MethodHead:
		setPageHeaders(req.w.Header())
		req.w.WriteHeader(http.StatusOK)
		return nil
	case isPrefetch(req.http.Header):
		// The browser discards this answer and asks again once the person opens the link.
		setPageHeaders(req.w.Header())
		req.w.WriteHeader(http.StatusServiceUnavailable)
		return nil
	}
	token, origin := req.http.PathValue("token"), req.originOf(domain.Actor{}) // the member's, once known
	accepted, err := req.Invitations.AcceptInvitation(req.ctx, origin, token)
	if errors.Is(err, context.Canceled) && req.ctx.Err() != nil {
		return nil // the client has gone
	}
	status, view := newInvitationView(accepted, err)
	if err != nil {
		req.recordFailure(err)
	}
	view.Link = signsIn(accepted, req.info.At)
	if accepted.Already && view.Link {
		// A mail scanner may have opened the link before, and the person has not been told yet.
		view.Outcome, view.Title = "joined", "You have joined"
	}
	// The invitation has been accepted: a failed lookup of the session must not fail the page.
	err = req.loadOptionalSession()
	if req.session.Email != "" &&
		domain.NormalizeEmail(req.session.Email) == domain.NormalizeEmail(accepted.Email) {
		view.OrgID = accepted.OrgID
		if view.Link { // nobody needs the link any more
			_, err = req.SignIn.UseInvitation(req.ctx, token, accepted.ExpiresAt, req.info.At)
		}
	}
	if err != nil {
		req.Logger.WarnContext(
			req.ctx, "session not loaded for invitation page",
			"request_id", req.info.RequestID, "error", err,
		)
	}
	view.Layout = req.layout(view.Title, "")
	req.render(status, "invitation.html", view)
	return nil
}

// signInByInvitation signs in the person whose invitation was accepted. The link was mailed to the
// address of the person's account, so it proves as much as a sign-in link: it signs in once and until
// it expires, and a GET, which mail scanners send too, does not use it up.
func (req *request) signInByInvitation() error {
	req.w.Header().Set("Referrer-Policy", "no-referrer") // the address holds a secret
	token, origin := req.http.PathValue("token"), req.originOf(domain.Actor{})
	accepted, err := req.Invitations.AcceptInvitation(req.ctx, origin, token)
	if err != nil {
		return req.acceptInvitation() // shows why
	}
	next := url.Values{"email": {accepted.Email}, "next": {"/portal/" + accepted.OrgID}}
	account, err := req.accountOf(req.ctx, origin, domain.SignInLink{
		Email: accepted.Email, CreatedAt: accepted.InvitedAt,
	})
	usable := err == nil && signsIn(accepted, req.info.At)
	if usable {
		usable, err = req.SignIn.UseInvitation(req.ctx, token, accepted.ExpiresAt, req.info.At)
	}
	switch {
	case err != nil && !errors.Is(err, domain.ErrSignInLink()):
		return err
	case !usable:
		req.redirect("sign-in?"+next.Encode(), "invitation-used")
		return nil
	}
	return req.beginSession(account, next.Get("next"), time.Time{})
}

// signsIn reports whether the link of an invitation may sign in at a time: until the invitation expires,
// and for as long as its use is remembered.
func signsIn(accepted domain.Acceptance, at time.Time) bool {
	return at.Before(accepted.ExpiresAt) && at.Before(accepted.InvitedAt.Add(SessionLifetime))
}

// newInvitationView returns the page for the result of AcceptInvitation.
func newInvitationView(accepted domain.Acceptance, err error) (status int, view invitationView) {
	switch {
	case errors.Is(err, domain.ErrInvitationExpired):
		return http.StatusGone, invitationView{
			Outcome: "expired",
			Title:   "This invitation has expired",
		}
	case errors.Is(err, &domain.Error{Code: domain.CodeNotFound}):
		return http.StatusNotFound, invitationView{
			Outcome: "unknown",
			Title:   "This invitation does not work",
		}
	case errors.Is(err, &domain.Error{Code: domain.CodeServiceUnavailable}):
		return http.StatusServiceUnavailable, invitationView{
			Outcome: "failed",
			Title:   "This cannot be done at the moment",
		}
	case err != nil:
		return http.StatusInternalServerError, invitationView{
			Outcome: "failed",
			Title:   "Something went wrong on our side",
		}
	}
	view = invitationView{
		Outcome: "joined",
		Title:   "You have joined",
		OrgName: accepted.OrgName,
		Account: accepted.Email,
		Access:  accepted.Access,
	}
	if accepted.OrgID != "" {
		view.Next = "/portal/" + accepted.OrgID
	}
	if accepted.Already {
		view.Outcome, view.Title = "already", "You have already joined"
	}
	return http.StatusOK, view
}

// isPrefetch reports whether the browser loads the page before the person has opened it: by the
// Sec-Purpose header of the Fetch standard or its predecessors.
func isPrefetch(header http.Header) bool {
	for _, name := range []string{"Sec-Purpose", "Purpose", "X-Moz", "X-Purpose"} {
		value := strings.ToLower(header.Get(name))
		if strings.Contains(value, "prefetch") || strings.Contains(value, "preview") {
			return true
		}
	}
	return false
}
