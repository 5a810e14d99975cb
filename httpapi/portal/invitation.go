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
	// Outcome is joined, already, expired, unknown or failed.
	Outcome   string
	Title     string
	OrgName   string
	Email     string
	Role      string
	RequestID string
}

// invitation is the page behind an invitation's link.
func (p *portal) invitation(w http.ResponseWriter, r *http.Request, token string) {
	switch {
	case r.Method == http.MethodHead:
		setHeaders(w.Header())
		w.WriteHeader(http.StatusOK)
		return
	case fetchesAhead(r.Header):
		// Nobody has opened the link. The browser takes this for "not now", and asks again when somebody does.
		setHeaders(w.Header())
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	accepted, err := p.Invitations.AcceptInvitation(r.Context(), domain.Origin{At: p.Now(), RequestID: requestID(w)}, token)
	if errors.Is(err, context.Canceled) && r.Context().Err() != nil {
		return // nobody waits for the page any more
	}
	status, view := invitationAnswer(accepted, err)
	if status == http.StatusInternalServerError {
		p.Log.ErrorContext(r.Context(), "an invitation cannot be accepted", "request_id", requestID(w), "error", err)
	}
	view.RequestID = requestID(w)
	p.render(w, r, status, "invitation.html", view)
}

// invitationAnswer gives the page for what came of a link.
func invitationAnswer(accepted domain.Acceptance, err error) (status int, view invitationView) {
	switch {
	case errors.Is(err, domain.ErrInvitationExpired):
		return http.StatusGone, invitationView{Outcome: "expired", Title: "This invitation has expired"}
	case errors.Is(err, &domain.Error{Code: domain.CodeNotFound}):
		return http.StatusNotFound, invitationView{Outcome: "unknown", Title: "This invitation does not work"}
	case err != nil:
		return http.StatusInternalServerError, invitationView{Outcome: "failed", Title: "Something failed on our side"}
	}
	view = invitationView{Outcome: "joined", Title: "You have joined", OrgName: accepted.OrgName, Email: accepted.Email, Role: string(accepted.Role)}
	if accepted.Already {
		view.Outcome, view.Title = "already", "You have joined already"
	}
	return http.StatusOK, view
}

// fetchesAhead says that a browser asks before anybody has opened the link (the Fetch standard's Sec-Purpose, and what was before it).
func fetchesAhead(header http.Header) bool {
	for _, name := range []string{"Sec-Purpose", "Purpose", "X-Moz", "X-Purpose"} {
		value := strings.ToLower(header.Get(name))
		if strings.Contains(value, "prefetch") || strings.Contains(value, "preview") {
			return true
		}
	}
	return false
}
