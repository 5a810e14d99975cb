package portal

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"hubcloud/domain"
)

// invitationView is what the invitation's page shows.
type invitationView struct {
	Layout
	// Outcome is joined, already, expired, unknown or failed.
	Outcome string
	Title   string
	OrgName string
	// Account is the address that joined.
	Account string
	// OrgID is the organization's, for whoever is signed in here with that address; empty for
	// everybody else.
	OrgID string
	Role  string
}

// invitation is the page behind an invitation's link.
func (req *request) acceptInvitation() error {
	req.w.Header().Set("Referrer-Policy", "no-referrer") // the address holds a secret
	switch {
	case req.http.Method == http.MethodHead:
		setPageHeaders(req.w.Header())
		req.w.WriteHeader(http.StatusOK)
		return nil
	case isPrefetch(req.http.Header):
		// Nobody has opened the link. The browser takes this for "not now", and asks again when
		// somebody does.
		setPageHeaders(req.w.Header())
		req.w.WriteHeader(http.StatusServiceUnavailable)
		return nil
	}
	origin := domain.Origin{At: req.info.At, RequestID: req.info.RequestID}
	accepted, err := req.portal.Invitations.AcceptInvitation(
		req.http.Context(), origin, req.http.PathValue("token"),
	)
	if errors.Is(err, context.Canceled) && req.http.Context().Err() != nil {
		return nil // nobody waits for the page any more
	}
	status, view := newInvitationView(accepted, err)
	if err != nil {
		req.recordFailure(status, err)
	}
	// Whether the page can say who is signed in here decides nothing: the invitation is accepted by
	// then.
	if err := req.loadOptionalSession(); err != nil {
		req.portal.Logger.WarnContext(
			req.http.Context(), "an invitation's page cannot say who is signed in",
			"request_id", req.info.RequestID, "error", err,
		)
	}
	if req.session.Email != "" &&
		domain.NormalizeEmail(req.session.Email) == domain.NormalizeEmail(accepted.Email) {
		view.OrgID = accepted.OrgID
	}
	view.Layout = req.layout(view.Title, "")
	req.render(status, "invitation.html", view)
	return nil
}

// newInvitationView gives the page for what came of a link.
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
			Title:   "That cannot be done at the moment",
		}
	case err != nil:
		return http.StatusInternalServerError, invitationView{
			Outcome: "failed",
			Title:   "Something failed on our side",
		}
	}
	view = invitationView{
		Outcome: "joined",
		Title:   "You have joined",
		OrgName: accepted.OrgName,
		Account: accepted.Email,
		Role:    string(accepted.Role),
	}
	if accepted.Already {
		view.Outcome, view.Title = "already", "You have joined already"
	}
	return http.StatusOK, view
}

// isPrefetch says that a browser asks before anybody has opened the link (the Fetch standard's
// Sec-Purpose, and what was before it).
func isPrefetch(header http.Header) bool {
	for _, name := range []string{"Sec-Purpose", "Purpose", "X-Moz", "X-Purpose"} {
		value := strings.ToLower(header.Get(name))
		if strings.Contains(value, "prefetch") || strings.Contains(value, "preview") {
			return true
		}
	}
	return false
}
