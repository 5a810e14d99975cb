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
	Shell
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
func (v *visit) invitation() error {
	v.w.Header().Set("Referrer-Policy", "no-referrer") // the address holds a secret
	switch {
	case v.r.Method == http.MethodHead:
		setHeaders(v.w.Header())
		v.w.WriteHeader(http.StatusOK)
		return nil
	case fetchesAhead(v.r.Header):
		// Nobody has opened the link. The browser takes this for "not now", and asks again when
		// somebody does.
		setHeaders(v.w.Header())
		v.w.WriteHeader(http.StatusServiceUnavailable)
		return nil
	}
	origin := domain.Origin{At: v.caller.At, RequestID: v.caller.RequestID}
	accepted, err := v.p.Invitations.AcceptInvitation(v.r.Context(), origin, v.r.PathValue("token"))
	if errors.Is(err, context.Canceled) && v.r.Context().Err() != nil {
		return nil // nobody waits for the page any more
	}
	status, view := invitationAnswer(accepted, err)
	if err != nil {
		v.faultOf(status, err)
	}
	// Whether the page can say who is signed in here decides nothing: the invitation is accepted by
	// then.
	if err := v.greet(); err != nil {
		v.p.Log.WarnContext(
			v.r.Context(), "an invitation's page cannot say who is signed in",
			"request_id", v.caller.RequestID, "error", err,
		)
	}
	if v.session.Email != "" &&
		domain.NormalizeEmail(v.session.Email) == domain.NormalizeEmail(accepted.Email) {
		view.OrgID = accepted.OrgID
	}
	view.Shell = v.shell(view.Title, "")
	v.render(status, "invitation.html", view)
	return nil
}

// invitationAnswer gives the page for what came of a link.
func invitationAnswer(accepted domain.Acceptance, err error) (status int, view invitationView) {
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

// fetchesAhead says that a browser asks before anybody has opened the link (the Fetch standard's
// Sec-Purpose, and what was before it).
func fetchesAhead(header http.Header) bool {
	for _, name := range []string{"Sec-Purpose", "Purpose", "X-Moz", "X-Purpose"} {
		value := strings.ToLower(header.Get(name))
		if strings.Contains(value, "prefetch") || strings.Contains(value, "preview") {
			return true
		}
	}
	return false
}
