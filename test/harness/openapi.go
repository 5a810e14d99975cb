package harness

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"

	"hubcloud/httpapi"
	"hubcloud/httpapi/openapitest"
	"hubcloud/test/openapi"
)

// described is openapi.yaml, read once a test run.
var described = sync.OnceValues(
	func() (*openapitest.Document, error) { return openapi.Parse(httpapi.OpenAPI()) },
)

// seen are the answers that checked transports have seen in this test run, as answerName names
// them.
var seen sync.Map

// answerName names an operation's answer; errorType is "" for what is no refusal.
func answerName(op *openapitest.Operation, status int, errorType string) string {
	return fmt.Sprint(op, " ", status, " ", errorType)
}

// NotSeen gives the answers that openapi.yaml describes and that no test of this run has got: "GET
// /v1/sites 400 invalid_request". The common ones are left out, which a route gives before it is
// itself asked, or when something is broken: 401, 403 for want of a scope, 429, 500, 503 for a part
// of the service that cannot answer at the moment, and 503 of /readyz.
func NotSeen() []string {
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
				if op.Method == http.MethodHead { // there is no body that could name a type
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

// Checked is a transport that holds every answer to httpapi/openapi.yaml before it hands it on, and
// fails the test with what is wrong: a status or a header field that is not described for the
// operation, a body that is not as its schema says, with fields that nobody knows included, a
// message of an event stream that is no event. Of an answer that a crash breaks off, what came is
// not looked at, but for whole messages of a stream. A transport that is checked already is checked
// for t from now on.
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

// CheckBare holds a refusal to openapi.yaml that came over a bare connection, to what may have been
// no request at all.
func CheckBare(t testing.TB, status int, header http.Header, body []byte) {
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
	if expected.Operation != nil {
		var refusal struct{ Error struct{ Type string } }
		_ = json.Unmarshal(body, &refusal) // what is no refusal has no type
		seen.Store(answerName(expected.Operation, response.StatusCode, refusal.Error.Type), true)
	}
	return response, nil
}

// CloseIdleConnections lets http.Client close those of the transport below.
func (c *checked) CloseIdleConnections() {
	(&http.Client{
		Transport: c.next,
	}).CloseIdleConnections()
}

// failing is a body's end that did not come.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
