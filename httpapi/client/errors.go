package client

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// ErrorType is the `type` of an error as the API names it, and at the same time the sentinel for
// errors.Is: a type that this package has no constant for can be compared with as
// client.ErrorType("some_type").
type ErrorType string

// Error makes an ErrorType an error, so that errors.Is takes it.
func (t ErrorType) Error() string { return string(t) }

// The types of the contract, in the order of its table.
const (
	// ErrInvalidRequest (400): a parameter, a body or a value that the API does not take. The
	// message names it.
	ErrInvalidRequest ErrorType = "invalid_request"
	// ErrUnauthenticated (401): the API key is missing, malformed, unknown or revoked.
	ErrUnauthenticated ErrorType = "unauthenticated"
	// ErrInsufficientScope (403): the API key lacks the scope that the message names.
	ErrInsufficientScope ErrorType = "insufficient_scope"
	// ErrForbidden (403): an API key may neither change, remove nor make an owner.
	ErrForbidden ErrorType = "forbidden"
	// ErrNotFound (404): the organization has no such site, hub, device, channel, member or
	// invitation.
	ErrNotFound ErrorType = "not_found"
	// ErrIdempotencyConflict (409): the idempotency key was used for another request in the last 24
	// hours. Take a new one.
	ErrIdempotencyConflict ErrorType = "idempotency_conflict"
	// ErrCursorExpired (410): the events after the cursor are no longer all there. See ErrResync.
	ErrCursorExpired ErrorType = "cursor_expired"
	// ErrCommandRefused (422): the hub will not drive the device.
	ErrCommandRefused ErrorType = "command_refused"
	// ErrHubNotAddable (422): the Serial is unknown, the hub has not come online yet, or another
	// organization has it. It is worth another call once the hub is online, which only the caller
	// can know: the client does not repeat it by itself.
	ErrHubNotAddable ErrorType = "hub_not_addable"
	// ErrRateLimited (429): too many requests; Error.RetryAfter says how long to wait.
	ErrRateLimited ErrorType = "rate_limited"
	// ErrInternal (500): a fault of the service. Quote Error.RequestID to support.
	ErrInternal ErrorType = "internal_error"
	// ErrHubError (502): the hub failed, or the request could not be sent to it.
	ErrHubError ErrorType = "hub_error"
	// ErrHubOffline (503): the hub is not connected, and nothing was done. See Client.WaitOnline.
	ErrHubOffline ErrorType = "hub_offline"
	// ErrHubUnavailable (503): the hub is connected but cannot act now.
	ErrHubUnavailable ErrorType = "hub_unavailable"
	// ErrHubTimeout (504): the hub did not answer in time. It may still have acted.
	ErrHubTimeout ErrorType = "hub_timeout"
	// ErrUnavailable (503): a part of the service cannot answer at the moment. Error.RetryAfter
	// says how long to wait.
	ErrUnavailable ErrorType = "service_unavailable"
)

// failure is a sentinel of this package's own.
type failure string

func (f failure) Error() string { return string(f) }

// What goes wrong beside the errors of the API. All are for errors.Is.
const (
	// ErrProtocol is an answer that is not what the contract says: no JSON, no list, no event
	// stream. Something between here and the service answers in its place, or the base address is
	// that of something else.
	ErrProtocol failure = "the answer is not what the API's contract says"
	// ErrResync ends a sequence of events that cannot go on from its cursor: events are lost, or
	// the hub was reset. Call Client.Resync, and go on from the cursor that it gives.
	ErrResync failure = "events cannot be resumed: read the devices anew"
	// ErrDiverged is the outcome of a command after which the device reported something else than
	// was asked, such as a jammed lock.
	ErrDiverged failure = "the device reports something other than was asked"
	// ErrFailed is the outcome of a command that the hub has accepted and abandoned.
	ErrFailed failure = "the hub has abandoned the command"
	// ErrSuperseded is the outcome of a command to a channel of which something else was asked
	// before the device reported.
	ErrSuperseded failure = "something else was asked of the channel meanwhile"
	// ErrNoOutcome says that the time for waiting has passed without an outcome. The command is
	// still under way.
	ErrNoOutcome failure = "no outcome within the time limit"
)

// Error is a refusal by the API. errors.Is compares its Type with the sentinels:
//
//	if errors.Is(err, client.ErrHubOffline) { … }
//
// and errors.As gives the whole of it.
type Error struct {
	// Status is the HTTP status.
	Status int
	// Type is what to branch on. It is empty when the answer has no error body of the API, as one
	// that a proxy gave in the service's place.
	Type ErrorType
	// Message is for people, and may change.
	Message string
	// RequestID is to be quoted to support.
	RequestID string
	// RetryAfter is how long the service asks to wait before the same request again; zero when it
	// does not say.
	RetryAfter time.Duration
}

// Error gives the type, the message, the status and the request id.
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

// Is makes errors.Is(err, client.ErrNotFound) true for every Error of that type.
func (e *Error) Is(target error) bool {
	t, ok := target.(ErrorType)
	return ok && t == e.Type
}

// maxForeignText bounds what of an answer that is not the API's is put into a message.
const maxForeignText = 200

// errorOf reads a refusal. What has no error body of the API keeps the beginning of its text as the
// message.
func errorOf(response *http.Response, body []byte, now time.Time) *Error {
	e := &Error{
		Status:     response.StatusCode,
		RequestID:  response.Header.Get("X-Request-Id"),
		RetryAfter: retryAfter(response.Header, now),
	}
	var told struct {
		Error struct {
			Type      ErrorType `json:"type"`
			Message   string    `json:"message"`
			RequestID string    `json:"request_id"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &told) == nil && told.Error.Type != "" {
		e.Type, e.Message = told.Error.Type, told.Error.Message
		if told.Error.RequestID != "" {
			e.RequestID = told.Error.RequestID
		}
		return e
	}
	text := strings.ToValidUTF8(string(body[:min(len(body), maxForeignText)]), "")
	e.Message = fmt.Sprintf("no error of the API, but %q", text)
	return e
}

// maxRetryAfter bounds what is believed of a Retry-After: what comes later than this is not waited
// for anyway.
const maxRetryAfter = 24 * time.Hour

// retryAfter reads the header of RFC 9110, section 10.2.3: seconds, or a date. Zero: it is absent,
// malformed or in the past.
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
