package harness

import (
	"bytes"
	"io"
	"net/http"
	"sync"
	"testing"

	"hubcloud/httpapi"
	"hubcloud/httpapi/openapitest"
)

// described is openapi.yaml, read once a test run.
var described = sync.OnceValues(func() (*openapitest.Document, error) { return openapitest.Parse(httpapi.OpenAPI()) })

// Checked is a transport that holds every answer to httpapi/openapi.yaml before it hands it on, and fails the test with what is wrong: a
// status or a header field that is not described for the operation, a body that is not as its schema says, with fields that nobody knows
// included, a message of an event stream that is no event. Of an answer that a crash breaks off, what came is not looked at, but for whole
// messages of a stream. A transport that is checked already is checked for t from now on.
func Checked(t testing.TB, next http.RoundTripper) http.RoundTripper {
	if c, ok := next.(*checked); ok {
		next = c.next
	}
	document, err := described()
	if err != nil {
		t.Fatalf("openapi.yaml: %v", err)
	}
	c := &checked{t: t, next: next, document: document}
	t.Cleanup(c.end)
	return c
}

type checked struct {
	t        testing.TB
	next     http.RoundTripper
	document *openapitest.Document

	mu    sync.Mutex
	ended bool // the test is over, and takes no more errors
}

func (c *checked) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
}

// report fails the test for a thing that is wrong.
func (c *checked) report(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil && !c.ended {
		c.t.Error(err)
	}
}

// RoundTrip asks, and looks at the answer.
func (c *checked) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := c.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	expected, err := c.document.Expect(request.Method, request.URL.EscapedPath(), response.StatusCode)
	c.report(err)
	if expected == nil {
		return response, nil
	}
	c.report(expected.CheckHeader(response.Header))
	if expected.Streams(response.Header) {
		messages := expected.Messages(response.Header, c.report)
		response.Body = struct {
			io.Reader
			io.Closer
		}{io.TeeReader(response.Body, messages), response.Body}
		return response, nil
	}
	body, err := io.ReadAll(response.Body)
	if err != nil { // the reader is to find it where it is
		response.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(body), failing{err}), response.Body}
		return response, nil
	}
	response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(body))
	c.report(expected.CheckBody(response.Header, body))
	return response, nil
}

// CloseIdleConnections lets http.Client close those of the transport below.
func (c *checked) CloseIdleConnections() { (&http.Client{Transport: c.next}).CloseIdleConnections() }

// failing is a body's end that did not come.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
