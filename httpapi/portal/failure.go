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

// WriteError answers in the place of a route what the router refuses under /portal: a path where
// there is nothing, a method that the path does not take, too many requests, and what failed.
// Headers that belong to the status are set by then.
func (p *Portal) WriteError(
	w http.ResponseWriter, r *http.Request, info RequestInfo, status int, apiErr *domain.Error,
) {
	req := &request{portal: p, w: w, http: r, info: info}
	w.Header().Set("Referrer-Policy", "no-referrer") // the address may hold a secret
	failure := failureOf(apiErr)
	failure.Status = status
	switch status {
	case http.StatusMethodNotAllowed:
		failure.Title, failure.Message = "That cannot be done here", "The page that led here may be old: go back, load it again, and repeat what you did."
	case http.StatusTooManyRequests:
		failure.Message = fmt.Sprintf(
			"Your network asks for more pages than we can serve it. Wait %s, then load the page again.",
			count(int(apiErr.RetryAfter/time.Second)+1, "second"),
		)
	}
	req.writeFailure(failure)
}

// fail answers with what went wrong, and what to do about it. What nobody should know goes into the
// request's line alone.
func (req *request) writeError(err error) {
	if errors.Is(err, context.Canceled) && req.http.Context().Err() != nil {
		return // nobody waits for the page any more
	}
	failure := failureOf(err)
	req.recordFailure(failure.Status, err)
	req.writeFailure(failure)
}

// faultOf tells the log of the request why it failed, when that is the service's doing.
func (req *request) recordFailure(status int, err error) {
	if status == http.StatusInternalServerError ||
		domain.CodeOf(err) == domain.CodeServiceUnavailable {
		req.recordError(err)
	}
}

// fault tells the log of the request why it failed.
func (req *request) recordError(err error) {
	if req.info.RecordError != nil {
		req.info.RecordError(err)
	}
}

// refuse shows a failure, or tells the script that asked.
func (req *request) writeFailure(failure failure) {
	if req.fromScript() {
		setPageHeaders(req.w.Header())
		req.w.Header().Set("Content-Type", "application/json")
		req.w.WriteHeader(failure.Status)
		// A script that has gone needs no answer.
		_ = json.NewEncoder(req.w).Encode(map[string]string{"message": failure.Message})
		return
	}
	failure.Layout = req.layout(failure.Title, "")
	if req.hub != "" {
		failure.Hub = req.member.OrgID + "/" + hubAddress(req.hub)
	}
	req.render(failure.Status, "failure.html", failure)
}

// scripted says that a script of a page asks, and not somebody who waits for a page.
func (req *request) fromScript() bool {
	accept := req.http.Header.Get("Accept")
	return strings.Contains(accept, "application/json") ||
		strings.Contains(accept, "text/event-stream")
}

// failure is what the page about something that went wrong shows.
type failure struct {
	Layout
	Status  int
	Title   string
	Message string
	// Hub is the way to the hub that it happened at, below /portal/; empty for none.
	Hub string
}

func failureOf(err error) failure {
	var apiErr *domain.Error
	if !errors.As(err, &apiErr) {
		return failure{
			Status: http.StatusInternalServerError, Title: "Something failed on our side",
			Message: "Wait a minute, then try again.",
		}
	}
	f := failure{
		Status:  statusOf(apiErr.Code),
		Title:   "That did not work",
		Message: sentence(apiErr.Message),
	}
	switch apiErr.Code {
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

// statusOf gives the HTTP status of a apiErr, as the API has it; 500 for what is none.
func statusOf(code domain.Code) int {
	if status, ok := apierror.Status(code); ok {
		return status
	}
	return http.StatusInternalServerError
}

// rejectionText gives what to show beside the field that an error is about; false for an error that
// is no apiErr of what was typed.
func rejectionText(err error) (string, bool) {
	var apiErr *domain.Error
	if !errors.As(err, &apiErr) || apiErr == errForgedForm {
		return "", false
	}
	switch apiErr.Code {
	case domain.CodeInternal, domain.CodeServiceUnavailable, domain.CodeNotFound:
		return "", false
	}
	return sentence(apiErr.Message), true
}

// rejectionStatus returns the status of a page whose form was refused: 429 over a limit, otherwise
// 400.
func rejectionStatus(err error) int {
	if domain.CodeOf(err) == domain.CodeRateLimited {
		return http.StatusTooManyRequests
	}
	return http.StatusBadRequest
}

// rejectedField gives the field of the form that a apiErr is about, as the API calls it; "" when it
// names none.
func rejectedField(err error) string {
	var apiErr *domain.Error
	if !errors.As(err, &apiErr) {
		return ""
	}
	field, _, ok := strings.Cut(apiErr.Message, ": ")
	if !ok || strings.Contains(field, " ") {
		return ""
	}
	return field
}

// startsWithVerb finds what the name of a field was the subject of.
var startsWithVerb = regexp.MustCompile(`^(is|has|must) `)

// sentence writes a apiErr's message for people: without the name of the API's field that it
// begins with, and with a capital.
func sentence(message string) string {
	if field, rest, ok := strings.Cut(message, ": "); ok && !strings.Contains(field, " ") {
		if message = rest; startsWithVerb.MatchString(message) {
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
