package harness

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"

	"hubcloud/test/openapi"
)

// described parses openapi.yaml and openapi-root.yaml once per test run.
var described = sync.OnceValues(openapi.Read)

// seen has the names (see answerName) of the answers that this test run received.
var seen sync.Map

// answerName names an answer of an operation. errorType is "" unless the answer is an API error.
func answerName(op *openapi.Operation, status int, errorType string) string {
	return fmt.Sprint(op, " ", status, " ", errorType)
}

// UntestedAnswers returns the answers that openapi.yaml describes and that no test of this run
// received, such as "GET /v1/sites 400 invalid_request". It leaves out answers that do not depend
// on the route: 401, 403 for a missing scope, 429, 500, 503, and failures of /readyz.
func UntestedAnswers() []string {
	document, err := described()
	if err != nil {
		return []string{err.Error()}
	}
	common := map[string]bool{
		"unauthenticated":     true,
		"insufficient_scope":  true,
		"rate_limited":        true,
		"internal_error":      true,
		"service_unavailable": true,
	}
	var missing []string
	for _, op := range document.Operations {
		for _, status := range op.Statuses() {
			if op.Pattern == "/readyz" && status >= http.StatusInternalServerError {
				continue
			}
			types := op.Types(status)
			if len(types) == 0 {
				types = []string{""}
			}
			for _, errorType := range types {
				if common[errorType] {
					continue
				}
				if op.Method == http.MethodHead { // no body, so no error type
					errorType = ""
				}
				name := answerName(op, status, errorType)
				if _, ok := seen.Load(name); !ok {
					missing = append(missing, name)
				}
			}
		}
	}
	return missing
}

// Checked returns a transport that checks every answer against openapi.yaml and reports violations
// to t: an undescribed status or header field, a body that violates its schema or has unknown
// fields, an invalid message of an event stream. If the connection breaks in the middle of an
// answer, the part that arrived is not checked, except for whole messages of a stream. If next is a
// checked transport, Checked replaces its t.
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

// CheckBareError checks an API error that was received over a bare connection, possibly in answer
// to something that is no HTTP request.
func CheckBareError(t testing.TB, status int, header http.Header, body []byte) {
	t.Helper()
	document, err := described()
	if err == nil {
		err = document.CheckError(status, header, body)
	}
	if err != nil {
		t.Error(err)
	}
}

type checked struct {
	t        testing.TB
	next     http.RoundTripper
	document *openapi.Document

	mu    sync.Mutex
	ended bool // t must not be used any more
}

func (c *checked) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
}

// report fails the test if err is not nil.
func (c *checked) report(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil && !c.ended {
		c.t.Error(err)
	}
}

// RoundTrip sends the request and checks the answer.
func (c *checked) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := c.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	// A body that the request itself had compressed is checked as HTTP libraries show it.
	if response.Header.Get("Content-Encoding") == "gzip" {
		plain, err := gzip.NewReader(response.Body)
		if err != nil {
			return nil, err
		}
		response.Body = struct {
			io.Reader
			io.Closer
		}{plain, response.Body}
		response.Header.Del("Content-Encoding")
	}
	expected, err := c.document.Expect(
		request.Method, request.URL.EscapedPath(), response.StatusCode,
	)
	c.report(err)
	if expected == nil {
		return response, nil
	}
	c.report(expected.CheckHeader(response.Header))
	if response.StatusCode < 400 && expected.Operation != nil {
		seen.Store(answerName(expected.Operation, response.StatusCode, ""), true)
	}
	if expected.Streams(response.Header) {
		messages := expected.Messages(response.Header, c.report)
		response.Body = struct {
			io.Reader
			io.Closer
		}{io.TeeReader(response.Body, messages), response.Body}
		return response, nil
	}
	body, err := io.ReadAll(response.Body)
	if err != nil { // the reader gets the error at the same position
		response.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(body), failing{err}), response.Body}
		return response, nil
	}
	response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(body))
	c.report(expected.CheckBody(response.Header, body))
	if expected.Operation != nil {
		var apiError struct{ Error struct{ Type string } }
		_ = json.Unmarshal(body, &apiError) // other bodies have no error type
		seen.Store(answerName(expected.Operation, response.StatusCode, apiError.Error.Type), true)
	}
	return response, nil
}

// CloseIdleConnections lets http.Client close the connections of the wrapped transport.
func (c *checked) CloseIdleConnections() {
	(&http.Client{Transport: c.next}).CloseIdleConnections()
}

// failing is a reader that fails.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
