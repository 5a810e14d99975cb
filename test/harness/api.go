package harness

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"
)

// Client calls the API with one key.
type Client struct {
	T    testing.TB
	Base string
	Key  string
	HTTP *http.Client
}

// NewClient makes a client of its own connections, whose answers are held to openapi.yaml.
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

// For is the client in the hands of a subtest: what fails, fails there.
func (c *Client) For(t testing.TB) *Client {
	other := *c
	other.T = t
	other.HTTP = &http.Client{Transport: Checked(t, c.HTTP.Transport), Timeout: c.HTTP.Timeout}
	return &other
}

// Answer is a response read whole.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// JSON reads the body into v.
func (a Answer) JSON(t testing.TB, v any) {
	t.Helper()
	if err := json.Unmarshal(a.Body, v); err != nil {
		t.Fatalf("status %d, body %q: %v", a.Status, a.Body, err)
	}
}

// Object reads the body as an object of any fields.
func (a Answer) Object(t testing.TB) map[string]any {
	t.Helper()
	var object map[string]any
	a.JSON(t, &object)
	return object
}

// Refusal is the contract's error body.
type Refusal struct {
	Type      string `json:"type"`
	Message   string `json:"message"`
	RequestID string `json:"request_id"`
}

// Refusal reads the contract's error body; what is none gives the zero Refusal.
func (a Answer) Refusal() Refusal {
	var body struct{ Error Refusal }
	if json.Unmarshal(a.Body, &body) != nil {
		return Refusal{}
	}
	return body.Error
}

// ErrorType is the `type` of the contract's error body, or empty.
func (a Answer) ErrorType() string { return a.Refusal().Type }

// Do sends one request; body may be nil, a string or bytes (sent as they are) or anything that JSON
// can hold. More header fields follow as names and values; an empty value takes a field away.
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

// Try is Do, and waits as long as the service asks for when it says that there were too many
// requests.
func (c *Client) Try(method, path string, body any, header ...string) (Answer, error) {
	for {
		answer, err := c.Do(method, path, body, header...)
		if err != nil || answer.Status != http.StatusTooManyRequests {
			return answer, err
		}
		if err := AwaitRetryAfter(answer.Header); err != nil {
			return answer, fmt.Errorf("429: %w", err)
		}
	}
}

// Must is Try, and fails the test when the answer is not of the wanted status.
func (c *Client) Must(method, path string, body any, status int, header ...string) Answer {
	c.T.Helper()
	answer, err := c.Try(method, path, body, header...)
	if err != nil {
		c.T.Fatalf("%s %s: %v", method, path, err)
	}
	if answer.Status != status {
		c.T.Fatalf(
			"%s %s %s: status %d, wanted %d: %s", method, path, body, answer.Status, status,
			answer.Body,
		)
	}
	return answer
}

// Refused is Must for a refusal, and holds its body to the contract: `{error: {type: string,
// message: string, request_id: string}}`.
func (c *Client) Refused(
	method, path string, body any, status int, errorType string, header ...string,
) Refusal {
	c.T.Helper()
	answer := c.Must(method, path, body, status, header...)
	refusal := CheckRefusal(c.T, answer)
	if refusal.Type != errorType {
		c.T.Errorf(
			"%s %s %s: type %q, wanted %q: %s", method, path, body, refusal.Type, errorType,
			answer.Body,
		)
	}
	return refusal
}

// CheckRefusal holds an error body to the contract, and gives it.
func CheckRefusal(t testing.TB, answer Answer) Refusal {
	t.Helper()
	var whole map[string]map[string]string
	if err := json.Unmarshal(answer.Body, &whole); err != nil || len(whole) != 1 ||
		len(whole["error"]) != 3 {
		t.Errorf("status %d: not the contract's error body: %q", answer.Status, answer.Body)
	}
	refusal := answer.Refusal()
	if refusal.Type == "" || refusal.Message == "" || refusal.RequestID == "" {
		t.Errorf("status %d: the error body lacks something: %s", answer.Status, answer.Body)
	}
	if id := answer.Header.Get("X-Request-Id"); id != refusal.RequestID {
		t.Errorf(
			"status %d: the header names request %q, the body %q", answer.Status, id,
			refusal.RequestID,
		)
	}
	return refusal
}
