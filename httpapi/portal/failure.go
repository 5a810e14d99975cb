package portal

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"time"

	"hubcloud/domain"
	"hubcloud/httpapi/response"
)

// WriteError answers a request that the router rejects under /portal: an unknown path, a method
// that the path does not allow, too many requests, or a failure. The caller has already set the
// header fields that the status requires.
func (p *Portal) WriteError(
	w http.ResponseWriter, r *http.Request, info RequestInfo, status int, apiErr *domain.Error,
) {
	req := p.newRequest(w, r, info)
	w.Header().Set("Referrer-Policy", "no-referrer") // the address may hold a secret
	failure := failureOf(apiErr)
	failure.Status = status
	switch status {
	case http.StatusMethodNotAllowed:
		failure.Title = "This cannot be done here"
		failure.Message = "The page that led here may be out of date. Go back, reload it and try again."
	case http.StatusTooManyRequests:
		failure.Message = "Your network has requested too many pages. Wait " +
			counted(int(apiErr.RetryAfter/time.Second)+1, "second") + ", then reload the page."
	}
	req.writeFailure(failure)
}

// pageNotFound answers for an address that has no page. The page shows a person's alarms, as every
// page does.
func (req *request) pageNotFound() error {
	_ = req.loadOptionalSession() // there is no page without one either
	return errPageNotFound
}

// writeError answers with an error. The cause of an internal error is only logged.
func (req *request) writeError(err error) {
	if errors.Is(err, context.Canceled) && req.ctx.Err() != nil {
		return // the client has gone
	}
	req.recordFailure(err)
	req.writeFailure(failureOf(err))
}

// recordFailure records the cause of an answer, if the service is at fault.
func (req *request) recordFailure(err error) {
	if cause := response.FromError(err).Cause; cause != nil {
		req.recordError(cause)
	}
}

// recordError records the cause of a failure for the request's log line.
func (req *request) recordError(err error) {
	if req.info.RecordError != nil {
		req.info.RecordError(err)
	}
}

// writeFailure answers with the page of a failure, or as JSON if a script asked.
func (req *request) writeFailure(failure failure) {
	if req.fromScript() {
		setPageHeaders(req.w.Header())
		req.w.Header().Set("Content-Type", "application/json")
		req.w.WriteHeader(failure.Status)
		// The write fails only if the client has gone.
		_ = json.NewEncoder(req.w).Encode(map[string]string{"message": failure.Message})
		return
	}
	failure.Layout = req.layout(failure.Title, "")
	if req.hub != "" {
		failure.Hub = req.org + "/" + hubAddress(req.hub)
	}
	req.render(failure.Status, "failure.html", failure)
}

// fromScript reports whether a page's script sent the request, and not a browser that loads a page.
func (req *request) fromScript() bool {
	accept := req.http.Header.Get("Accept")
	return strings.Contains(accept, "application/json") ||
		strings.Contains(accept, "text/event-stream")
}

// failure is the page of an error.
type failure struct {
	Layout
	Status  int
	Title   string
	Message string
	// Hub is the address of the page of the hub in the path, relative to /portal/; "" for none.
	Hub string
	// Form is the address of the page of the rejected form, relative to /portal/; "" for none.
	Form string
}

// failureOf returns the page of an error, without its Layout.
func failureOf(err error) failure {
	apiErr := response.FromError(err).Error
	f := failure{
		Status:  statusOf(apiErr.Code),
		Title:   "That did not work",
		Message: sentenceOf(apiErr.Message),
	}
	switch apiErr.Code {
	case domain.CodeNotFound:
		f.Title = "Page not found, or you don't have access."
		f.Message = "Check the address. Someone may have removed what was here. If you should have " +
			"access, ask an owner or admin."
	case domain.CodeUnauthenticated:
		f.Title, f.Message = "Your session has ended", "Sign in again."
	case domain.CodeForbidden:
		f.Title = "You don't have permission"
	case domain.CodeRateLimited:
		f.Title = "Too many requests"
	case domain.CodeInternal:
		f.Title, f.Message = "Something went wrong on our side", "Wait a minute, then try again."
	}
	return f
}

// codeOf returns the code of an error, "" for nil.
func codeOf(err error) domain.Code {
	if err == nil {
		return ""
	}
	return domain.CodeOf(err)
}

// statusOf returns the HTTP status that the API has for a code; 500 for an unknown one.
func statusOf(code domain.Code) int {
	if status, ok := response.Status(code); ok {
		return status
	}
	return http.StatusInternalServerError
}

// rejectionText returns the text to show beside the rejected field. It returns false if the error
// is not about what was typed; the error then needs a page of its own.
func rejectionText(err error) (string, bool) {
	var apiErr *domain.Error
	if !errors.As(err, &apiErr) || apiErr == errForgedForm {
		return "", false
	}
	switch apiErr.Code {
	case domain.CodeInternal, domain.CodeServiceUnavailable, domain.CodeNotFound:
		return "", false
	}
	if rejectedField(err) == "email" {
		return "Enter a valid email address.", true
	}
	return sentenceOf(apiErr.Message), true
}

// rejectionStatus returns the status of a page whose form was rejected: 429 over a limit, otherwise
// 400.
func rejectionStatus(err error) int {
	if domain.CodeOf(err) == domain.CodeRateLimited {
		return http.StatusTooManyRequests
	}
	return http.StatusBadRequest
}

// rejectedField returns the rejected field, by its name in the API; "" if the error names none.
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

// startsWithVerb matches a message whose subject was the field name before it.
var startsWithVerb = regexp.MustCompile(`^(is|has|must) `)

// sentenceOf turns the message of an API error into a sentence for people: it removes the name of
// the field at the start and capitalizes. "name: must not be empty" becomes "It must not be empty."
func sentenceOf(message string) string {
	if field, rest, ok := strings.Cut(message, ": "); ok && !strings.Contains(field, " ") {
		if message = rest; startsWithVerb.MatchString(message) {
			message = "it " + message
		}
	} else if first, rest, ok := strings.Cut(message, " "); ok && strings.HasPrefix(rest, "must ") {
		message = strings.ReplaceAll(first, "_", " ") + " " + rest // the form of errors from hubs
	}
	if message == "" {
		return message
	}
	return strings.ToUpper(message[:1]) + message[1:] + "."
}
