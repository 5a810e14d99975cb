package client

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// ErrorType is the `type` of an API error and also its sentinel for errors.Is. A type without a
// constant in this package can be compared as client.ErrorType("some_type").
type ErrorType string

// Error makes an ErrorType an error, so that errors.Is accepts it.
func (t ErrorType) Error() string { return string(t) }

// The error types of the contract, in the order of its table.
const (
	// ErrInvalidRequest (400): a parameter, body or value is not valid. The message names it.
	ErrInvalidRequest ErrorType = "invalid_request"
	// ErrUnauthenticated (401): the API key is missing, malformed, unknown or revoked.
	ErrUnauthenticated ErrorType = "unauthenticated"
	// ErrInsufficientScope (403): the API key does not have the scope that the message names.
	ErrInsufficientScope ErrorType = "insufficient_scope"
	// ErrForbidden (403): an API key cannot change, remove or create an owner.
	ErrForbidden ErrorType = "forbidden"
	// ErrNotFound (404): the organization has no such site, hub, device, channel, member or
	// invitation.
	ErrNotFound ErrorType = "not_found"
	// ErrIdempotencyConflict (409): the idempotency key was used for another request in the last 24
	// hours. Use a new one.
	ErrIdempotencyConflict ErrorType = "idempotency_conflict"
	// ErrCursorExpired (410): not all events after the cursor are still stored. See ErrResync.
	ErrCursorExpired ErrorType = "cursor_expired"
	// ErrCommandRefused (422): the hub refuses to control the device.
	ErrCommandRefused ErrorType = "command_refused"
	// ErrHubNotAddable (422): the Serial is unknown, the hub has not come online yet, or another
	// organization has it. It is not retried, because only the caller can know when the hub will be
	// online.
	ErrHubNotAddable ErrorType = "hub_not_addable"
	// ErrRateLimited (429): too many requests; Error.RetryAfter is how long to wait.
	ErrRateLimited ErrorType = "rate_limited"
	// ErrInternal (500): a fault of the service. Quote Error.RequestID to support.
	ErrInternal ErrorType = "internal_error"
	// ErrHubError (502): the hub failed, or the request could not be sent to it.
	ErrHubError ErrorType = "hub_error"
	// ErrHubOffline (503): the hub is not connected, and nothing was done. See Client.WaitOnline.
	ErrHubOffline ErrorType = "hub_offline"
	// ErrHubUnavailable (503): the hub is connected but cannot act at the moment.
	ErrHubUnavailable ErrorType = "hub_unavailable"
	// ErrHubTimeout (504): the hub did not answer in time. It may still have acted.
	ErrHubTimeout ErrorType = "hub_timeout"
	// ErrUnavailable (503): part of the service is not responding; Error.RetryAfter is how long to
	// wait.
	ErrUnavailable ErrorType = "service_unavailable"
)

// failure is the type of this package's own sentinels.
type failure string

func (f failure) Error() string { return string(f) }

// Errors that are not the API's. Compare with errors.Is.
const (
	// ErrProtocol means that an answer is not what the contract says, such as no JSON or no event
	// stream: something between client and service has answered, or BaseURL is wrong.
	ErrProtocol failure = "the answer is not what the API's contract says"
	// ErrResync ends a sequence of events that cannot continue from its cursor: events are lost, or
	// the hub was reset. Call Client.Resync and continue from its cursor.
	ErrResync failure = "events cannot be resumed: read the devices again"
	// ErrDiverged means that the device reported another value than the command asked for, such as
	// a jammed lock.
	ErrDiverged failure = "the device reports another value than the command asked for"
	// ErrFailed means that the hub accepted the command and abandoned it.
	ErrFailed failure = "the hub has abandoned the command"
	// ErrSuperseded means that another value was desired for the channel before the device
	// reported.
	ErrSuperseded failure = "another command to the channel came first"
	// ErrNoOutcome means that there was no outcome within the limit. The command is still under
	// way.
	ErrNoOutcome failure = "no outcome within the time limit"
)

// Error is an error of the API. errors.Is compares its Type with the sentinels:
//
//	if errors.Is(err, client.ErrHubOffline) { … }
//
// errors.As returns all of it.
type Error struct {
	// Status is the HTTP status.
	Status int
	// Type is what to branch on. It is empty if the answer has no error body of the API, for
	// example one from a proxy.
	Type ErrorType
	// Message is for people and may change.
	Message string
	// RequestID identifies the request to support.
	RequestID string
	// RetryAfter is how long the service asks to wait before a retry; zero if it does not say.
	RetryAfter time.Duration
}

// Error returns the type, the message, the status and the request id.
func (e *Error) Error() string {
	what := string(e.Type)
	if what == "" {
		what = strings.ToLower(http.StatusText(e.Status))
	}
	if e.RequestID == "" {
		return fmt.Sprintf("%s: %s (status %d)", what, e.Message, e.Status)
	}
	return fmt.Sprintf("%s: %s (status %d, request %s)", what, e.Message, e.Status, e.RequestID)
}

// Is reports whether target is the error's Type.
func (e *Error) Is(target error) bool {
	t, ok := target.(ErrorType)
	return ok && t == e.Type
}

// maxForeignText bounds how much of an answer that is not the API's goes into a message.
const maxForeignText = 200

// errorOf decodes an API error. If the answer has no error body of the API, the message is the
// beginning of its text.
func errorOf(response *http.Response, body []byte, now time.Time) *Error {
	e := &Error{
		Status:     response.StatusCode,
		RequestID:  response.Header.Get("X-Request-Id"),
		RetryAfter: retryAfter(response.Header, now),
	}
	var decoded struct {
		Error struct {
			Type      ErrorType `json:"type"`
			Message   string    `json:"message"`
			RequestID string    `json:"request_id"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &decoded) == nil && decoded.Error.Type != "" {
		e.Type, e.Message = decoded.Error.Type, decoded.Error.Message
		if decoded.Error.RequestID != "" {
			e.RequestID = decoded.Error.RequestID
		}
		return e
	}
	text := strings.ToValidUTF8(string(body[:min(len(body), maxForeignText)]), "")
	e.Message = fmt.Sprintf("no error of the API, but %q", text)
	return e
}

// maxRetryAfter bounds the accepted values of Retry-After. No call waits as long anyway.
const maxRetryAfter = 24 * time.Hour

// retryAfter parses the header of RFC 9110, section 10.2.3: seconds or a date. It returns zero if
// the header is absent, malformed or in the past.
func retryAfter(header http.Header, now time.Time) time.Duration {
	value := header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(value, 10, 63); err == nil {
		return time.Duration(min(seconds, uint64(maxRetryAfter/time.Second))) * time.Second
	}
	if date, err := http.ParseTime(value); err == nil {
		return min(max(0, date.Sub(now)), maxRetryAfter)
	}
	return 0
}
