package harness

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"hubcloud/streams/streamstest"
)

// Client calls the API with one key.
type Client struct {
	T    testing.TB
	Base string
	Key  string
	HTTP *http.Client
	// Repeats is whether a GET that is answered 503 is repeated, for a minute: after a fault, and on a
	// machine that has far too much to do, a cluster may have no leader for a moment.
	Repeats bool
}

// Must fails the test if there is an error.
func Must(t testing.TB, err error) {
	t.Helper()
	streamstest.Must(t, err)
}

// NewClient returns a client with its own connections. It checks every answer against openapi.yaml.
func NewClient(t testing.TB, base, key string) *Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 64
	t.Cleanup(transport.CloseIdleConnections)
	return &Client{
		T:    t,
		Base: base,
		Key:  key,
		HTTP: &http.Client{Transport: Checked(t, transport), Timeout: 90 * time.Second},
	}
}

// For returns a copy of the client that reports failures to t.
func (c *Client) For(t testing.TB) *Client {
	other := *c
	other.T = t
	other.HTTP = &http.Client{Transport: Checked(t, c.HTTP.Transport), Timeout: c.HTTP.Timeout}
	return &other
}

// Answer is a response with its whole body.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// JSON decodes the body into v.
func (a Answer) JSON(t testing.TB, v any) {
	t.Helper()
	if err := json.Unmarshal(a.Body, v); err != nil {
		t.Fatalf("status %d, body %q: %v", a.Status, a.Body, err)
	}
}

// Object decodes the body as a JSON object.
func (a Answer) Object(t testing.TB) map[string]any {
	t.Helper()
	var object map[string]any
	a.JSON(t, &object)
	return object
}

// APIError is the contract's error body.
type APIError struct {
	Type      string `json:"type"`
	Message   string `json:"message"`
	RequestID string `json:"request_id"`
}

// APIError decodes the contract's error body. It returns the zero APIError for any other body.
func (a Answer) APIError() APIError {
	var body struct{ Error APIError }
	if json.Unmarshal(a.Body, &body) != nil {
		return APIError{}
	}
	return body.Error
}

// ErrorType returns the error type of the contract's error body, or "".
func (a Answer) ErrorType() string { return a.APIError().Type }

// Do sends one request. The body may be nil, a string or []byte (sent unchanged), or a value to
// encode as JSON. Additional header fields follow as names and values; an empty value removes the
// field.
func (c *Client) Do(method, path string, body any, header ...string) (Answer, error) {
	var content io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		content = bytes.NewReader([]byte(b))
	case []byte:
		content = bytes.NewReader(b)
	default:
		text, err := json.Marshal(b)
		if err != nil {
			return Answer{}, err
		}
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequest(method, c.Base+path, content)
	if err != nil {
		return Answer{}, err
	}
	if c.Key != "" {
		request.Header.Set("Authorization", "Bearer "+c.Key)
	}
	if content != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		if request.Header.Set(header[i], header[i+1]); header[i+1] == "" {
			request.Header.Del(header[i])
		}
	}
	response, err := c.HTTP.Do(request)
	if err != nil {
		return Answer{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return Answer{Status: response.StatusCode, Header: response.Header, Body: text}, err
}

// Try is Do, and repeats the request after Retry-After while the answer is 429, or 503 if Repeats is set.
func (c *Client) Try(method, path string, body any, header ...string) (Answer, error) {
	for began := time.Now(); ; {
		answer, err := c.Do(method, path, body, header...)
		unavailable := c.Repeats && method == http.MethodGet && time.Since(began) < time.Minute &&
			answer.Status == http.StatusServiceUnavailable
		if err != nil || answer.Status != http.StatusTooManyRequests && !unavailable {
			return answer, err
		}
		if err := AwaitRetryAfter(answer.Header); err != nil {
			return answer, fmt.Errorf("%d: %w", answer.Status, err)
		}
	}
}

// Must is Try, and fails the test unless the answer has the wanted status.
func (c *Client) Must(method, path string, body any, status int, header ...string) Answer {
	c.T.Helper()
	answer, err := c.Try(method, path, body, header...)
	if err != nil {
		c.T.Fatalf("%s %s: %v", method, path, err)
	}
	if answer.Status != status {
		c.T.Fatalf(
			"%s %s %s: got status %d, want %d: %s", method, path, body, answer.Status, status,
			answer.Body,
		)
	}
	return answer
}

// Get is Must for a GET that is answered with 200.
func (c *Client) Get(path string, header ...string) Answer {
	c.T.Helper()
	return c.Must(http.MethodGet, path, nil, http.StatusOK, header...)
}

// Create is Must for a POST that is answered with 201.
func (c *Client) Create(path string, body any, header ...string) Answer {
	c.T.Helper()
	return c.Must(http.MethodPost, path, body, http.StatusCreated, header...)
}

// Command is Must for a POST that is answered with 202.
func (c *Client) Command(path string, body any, header ...string) Answer {
	c.T.Helper()
	return c.Must(http.MethodPost, path, body, http.StatusAccepted, header...)
}

// Patch is Must for a PATCH that is answered with 200.
func (c *Client) Patch(path string, body any, header ...string) Answer {
	c.T.Helper()
	return c.Must(http.MethodPatch, path, body, http.StatusOK, header...)
}

// Delete is Must for a DELETE that is answered with 204.
func (c *Client) Delete(path string) {
	c.T.Helper()
	if answer := c.Must(http.MethodDelete, path, nil, http.StatusNoContent); len(answer.Body) != 0 {
		c.T.Errorf("DELETE %s: got body %s, want none", path, answer.Body)
	}
}

// errorStatus has the status of each type of error: the contract's table "Errors", and the design's
// service_unavailable.
var errorStatus = map[string]int{
	"invalid_request": 400, "unauthenticated": 401, "insufficient_scope": 403, "forbidden": 403,
	"not_found": 404, "idempotency_conflict": 409, "cursor_expired": 410, "command_refused": 422,
	"hub_not_addable": 422, "rate_limited": 429, "internal_error": 500, "hub_error": 502,
	"hub_offline": 503, "hub_unavailable": 503, "service_unavailable": 503, "hub_timeout": 504,
}

// Rejected is Must for an API error, with the status of its type. It checks the error body and its
// type and returns it.
func (c *Client) Rejected(
	method, path string, body any, errorType string, header ...string,
) APIError {
	c.T.Helper()
	answer := c.Must(method, path, body, errorStatus[errorType], header...)
	apiError := CheckAPIError(c.T, answer)
	if apiError.Type != errorType {
		c.T.Errorf(
			"%s %s %s: got error type %q, want %q: %s", method, path, body, apiError.Type,
			errorType, answer.Body,
		)
	}
	return apiError
}

// CheckAPIError checks an error body against the contract, {error: {type: string, message: string,
// request_id: string}}, and returns it.
func CheckAPIError(t testing.TB, answer Answer) APIError {
	t.Helper()
	var whole map[string]map[string]string
	if err := json.Unmarshal(answer.Body, &whole); err != nil || len(whole) != 1 ||
		len(whole["error"]) != 3 {
		t.Errorf(
			"status %d: got body %q, want the contract's error body", answer.Status, answer.Body,
		)
	}
	apiError := answer.APIError()
	if apiError.Type == "" || apiError.Message == "" || apiError.RequestID == "" {
		t.Errorf(
			"status %d: got error body %s, want type, message and request_id", answer.Status,
			answer.Body,
		)
	}
	if id := answer.Header.Get("X-Request-Id"); id != apiError.RequestID {
		t.Errorf(
			"status %d: got X-Request-Id %q, want the body's %q", answer.Status, id,
			apiError.RequestID,
		)
	}
	return apiError
}
