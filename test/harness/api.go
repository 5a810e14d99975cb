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

// NewClient makes a client of its own connections.
func NewClient(t testing.TB, base, key string) *Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 64
	t.Cleanup(transport.CloseIdleConnections)
	return &Client{T: t, Base: base, Key: key, HTTP: &http.Client{Transport: transport, Timeout: 90 * time.Second}}
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

// ErrorType is the `type` of the contract's error body, or empty.
func (a Answer) ErrorType() string {
	var body struct{ Error struct{ Type string } }
	if json.Unmarshal(a.Body, &body) != nil {
		return ""
	}
	return body.Error.Type
}

// Do sends one request; body may be nil, a string (sent as it is) or anything that JSON can hold.
func (c *Client) Do(method, path string, body any) (Answer, error) {
	var content io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		content = bytes.NewReader([]byte(b))
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
	response, err := c.HTTP.Do(request)
	if err != nil {
		return Answer{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return Answer{Status: response.StatusCode, Header: response.Header, Body: text}, err
}

// Must is Do, and fails the test when the answer is not of the wanted status. A refusal for too many requests is waited out.
func (c *Client) Must(method, path string, body any, status int) Answer {
	c.T.Helper()
	for {
		answer, err := c.Do(method, path, body)
		if err != nil {
			c.T.Fatalf("%s %s: %v", method, path, err)
		}
		if answer.Status == http.StatusTooManyRequests && status != http.StatusTooManyRequests {
			time.Sleep(200 * time.Millisecond)
			continue
		}
		if answer.Status != status {
			c.T.Fatalf("%s %s: status %d, wanted %d: %s", method, path, answer.Status, status, answer.Body)
		}
		return answer
	}
}

// Event is an event as the API gives it.
type Event struct {
	Cursor       string          `json:"cursor"`
	Type         string          `json:"type"`
	HubID        string          `json:"hub_id"`
	DeviceID     *int64          `json:"device_id"`
	Time         string          `json:"time"`
	ClockTrusted *bool           `json:"clock_trusted"`
	Data         json.RawMessage `json:"data"`
}

// Page is a page of events.
type Page struct {
	Data       []Event `json:"data"`
	NextCursor string  `json:"next_cursor"`
	HasMore    bool    `json:"has_more"`
}

// Events reads one page.
func (c *Client) Events(hub, after string, limit int, wait int) Page {
	c.T.Helper()
	path := fmt.Sprintf("/hubs/%s/events?limit=%d&wait=%d", hub, limit, wait)
	if after != "" {
		path += "&after=" + after
	}
	var page Page
	c.Must(http.MethodGet, path, nil, http.StatusOK).JSON(c.T, &page)
	return page
}

// AllEvents reads a hub's log from a cursor (empty: from the oldest event) to its end.
func (c *Client) AllEvents(hub, after string) []Event {
	c.T.Helper()
	var all []Event
	for {
		page := c.Events(hub, after, 500, 0)
		all = append(all, page.Data...)
		if !page.HasMore {
			return all
		}
		after = page.NextCursor
	}
}
