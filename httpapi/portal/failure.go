package portal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"hubcloud/domain"
	"hubcloud/httpapi/apierror"
)

// Refuse answers in the place of a route what the router refuses under /portal: a path where there
// is nothing, a method that the path does not take, too many requests, and what failed. Headers
// that belong to the status are set by then.
func (p *Portal) Refuse(
	w http.ResponseWriter, r *http.Request, caller Caller, status int, refusal *domain.Error,
) {
	v := &visit{p: p, w: w, r: r, caller: caller}
	w.Header().Set("Referrer-Policy", "no-referrer") // the address may hold a secret
	failure := failureOf(refusal)
	failure.Status = status
	switch status {
	case http.StatusMethodNotAllowed:
		failure.Title, failure.Message = "That cannot be done here", "The page that led here may be old: go back, load it again, and repeat what you did."
	case http.StatusTooManyRequests:
		failure.Message = fmt.Sprintf(
			"Your network asks for more pages than we can serve it. Wait %s, then load the page again.",
			count(int(refusal.RetryAfter/time.Second)+1, "second"),
		)
	}
	v.refuse(failure)
}

// fail answers with what went wrong, and what to do about it. What nobody should know goes into the
// request's line alone.
func (v *visit) fail(err error) {
	if errors.Is(err, context.Canceled) && v.r.Context().Err() != nil {
		return // nobody waits for the page any more
	}
	failure := failureOf(err)
	v.faultOf(failure.Status, err)
	v.refuse(failure)
}

// faultOf tells the log of the request why it failed, when that is the service's doing.
func (v *visit) faultOf(status int, err error) {
	if status == http.StatusInternalServerError ||
		domain.CodeOf(err) == domain.CodeServiceUnavailable {
		v.fault(err)
	}
}

// fault tells the log of the request why it failed.
func (v *visit) fault(err error) {
	if v.caller.Fault != nil {
		v.caller.Fault(err)
	}
}

// refuse shows a failure, or tells the script that asked.
func (v *visit) refuse(failure failure) {
	if v.scripted() {
		setHeaders(v.w.Header())
		v.w.Header().Set("Content-Type", "application/json")
		v.w.WriteHeader(failure.Status)
		// A script that has gone needs no answer.
		_ = json.NewEncoder(v.w).Encode(map[string]string{"message": failure.Message})
		return
	}
	failure.Shell = v.shell(failure.Title, "")
	if v.hub != "" {
		failure.Hub = v.member.OrgID + "/" + hubAddress(v.hub)
	}
	v.render(failure.Status, "failure.html", failure)
}

// scripted says that a script of a page asks, and not somebody who waits for a page.
func (v *visit) scripted() bool {
	accept := v.r.Header.Get("Accept")
	return strings.Contains(accept, "application/json") ||
		strings.Contains(accept, "text/event-stream")
}

// failure is what the page about something that went wrong shows.
type failure struct {
	Shell
	Status  int
	Title   string
	Message string
	// Hub is the way to the hub that it happened at, below /portal/; empty for none.
	Hub string
}

func failureOf(err error) failure {
	var refusal *domain.Error
	if !errors.As(err, &refusal) {
		return failure{
			Status: http.StatusInternalServerError, Title: "Something failed on our side",
			Message: "Wait a minute, then try again.",
		}
	}
	f := failure{
		Status:  statusOf(refusal.Code),
		Title:   "That did not work",
		Message: sentence(refusal.Message),
	}
	switch refusal.Code {
	case domain.CodeNotFound:
		f.Title, f.Message = "There is nothing here", "It may have been removed, or the address "+
			"is not whole. What others have is not shown either."
	case domain.CodeUnauthenticated:
		f.Title, f.Message = "You are signed out", "Load the page again to sign in."
	case domain.CodeForbidden:
		f.Title = "You may not do that"
	case domain.CodeRateLimited:
		f.Title = "Too many requests"
	case domain.CodeInternal:
		f.Title, f.Message = "Something failed on our side", "Wait a minute, then try again."
	}
	return f
}

// statusOf gives the HTTP status of a refusal, as the API has it; 500 for what is none.
func statusOf(code domain.Code) int {
	if status, ok := apierror.Status(code); ok {
		return status
	}
	return http.StatusInternalServerError
}

// refusalText gives what to show beside the field that an error is about; false for an error that
// is no refusal of what was typed.
func refusalText(err error) (string, bool) {
	var refusal *domain.Error
	if !errors.As(err, &refusal) || refusal == errForged {
		return "", false
	}
	switch refusal.Code {
	case domain.CodeInternal, domain.CodeServiceUnavailable, domain.CodeNotFound:
		return "", false
	}
	return sentence(refusal.Message), true
}

// refusedStatus returns the status of a page whose form was refused: 429 over a limit, otherwise
// 400.
func refusedStatus(err error) int {
	if domain.CodeOf(err) == domain.CodeRateLimited {
		return http.StatusTooManyRequests
	}
	return http.StatusBadRequest
}

// refusedField gives the field of the form that a refusal is about, as the API calls it; "" when it
// names none.
func refusedField(err error) string {
	var refusal *domain.Error
	if !errors.As(err, &refusal) {
		return ""
	}
	field, _, ok := strings.Cut(refusal.Message, ": ")
	if !ok || strings.Contains(field, " ") {
		return ""
	}
	return field
}

// verbFirst finds what the name of a field was the subject of.
var verbFirst = regexp.MustCompile(`^(is|has|must) `)

// sentence writes a refusal's message for people: without the name of the API's field that it
// begins with, and with a capital.
func sentence(message string) string {
	if field, rest, ok := strings.Cut(message, ": "); ok && !strings.Contains(field, " ") {
		if message = rest; verbFirst.MatchString(message) {
			message = "it " + message
		}
	} else if first, rest, ok := strings.Cut(message, " "); ok && strings.HasPrefix(rest, "must ") {
		message = strings.ReplaceAll(first, "_", " ") + " " + rest // a hub names the field so
	}
	if message == "" {
		return message
	}
	return strings.ToUpper(message[:1]) + message[1:] + "."
}
