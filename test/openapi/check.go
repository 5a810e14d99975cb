package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Expected is what the document says about an answer with a known status.
type Expected struct {
	// Operation is the requested operation; nil if the document has none for the path and method.
	Operation *Operation

	what   string
	method string
	answer *answer
}

// Expect returns what the document says about an answer. It returns nil for pages that are not
// described, and an error for a status that is not described.
func (d *Document) Expect(method, path string, status int) (*Expected, error) {
	what := fmt.Sprintf("%s %s: %d", method, path, status)
	var taken []string
	for _, o := range d.Operations {
		if !matches(o.Pattern, path) {
			continue
		}
		if taken = append(taken, o.Method); o.Method != method {
			continue
		}
		if o.answers[status] == nil && unread(status) {
			return &Expected{nil, what, method, d.unrouted[status]}, nil
		}
		if o.answers[status] == nil {
			return nil, fmt.Errorf("%s: is not described; described are %v", what, o.Statuses())
		}
		return &Expected{o, what, method, o.answers[status]}, nil
	}
	counted := strings.HasPrefix(path, "/v1/") || strings.HasPrefix(path, "/link/")
	if page := path == "/v1/reference" || strings.HasPrefix(path, "/v1/reference/"); page ||
		!counted && taken == nil {
		return nil, nil
	}
	if !counted {
		return nil, nil // the state of the process, asked with another method
	}
	misplaced := status == http.StatusNotFound && taken != nil ||
		status == http.StatusMethodNotAllowed && taken == nil
	if misplaced || d.unrouted[status] == nil {
		return nil, fmt.Errorf("%s: is not described; the path takes %v", what, taken)
	}
	return &Expected{nil, what, method, d.unrouted[status]}, nil
}

// unroutedAnswers maps the statuses of unknown paths, unsupported methods and unparsed requests to
// the components that describe them.
var unroutedAnswers = map[int]string{
	http.StatusBadRequest:          "InvalidRequest",
	http.StatusUnauthorized:        "Unauthenticated",
	http.StatusNotFound:            "NotFound",
	http.StatusMethodNotAllowed:    "MethodNotAllowed",
	http.StatusTooManyRequests:     "RateLimited",
	http.StatusInternalServerError: "InternalError",

	http.StatusExpectationFailed:           "InvalidRequest",
	http.StatusRequestHeaderFieldsTooLarge: "InvalidRequest",
}

// unread reports whether the server answers with the status before it has read the whole request.
func unread(status int) bool {
	return status == http.StatusExpectationFailed ||
		status == http.StatusRequestHeaderFieldsTooLarge
}

func (d *Document) readUnrouted() error {
	d.unrouted = map[int]*answer{}
	for status, name := range unroutedAnswers {
		unrouted, err := d.answer(d.root.get("components", "responses", name))
		if err != nil {
			return err
		}
		d.unrouted[status] = unrouted
	}
	return nil
}

// CheckError checks the error for a request that is not valid HTTP and so has no operation.
func (d *Document) CheckError(status int, header http.Header, body []byte) error {
	what := fmt.Sprintf("an error with status %d", status)
	if d.unrouted[status] == nil {
		return fmt.Errorf("%s: is not described", what)
	}
	e := &Expected{nil, what, "", d.unrouted[status]}
	return errors.Join(e.CheckHeader(header), e.CheckBody(header, body))
}

// matches reports whether a path matches a pattern.
func matches(pattern, path string) bool {
	want, have := strings.Split(pattern, "/"), strings.Split(path, "/")
	return slices.EqualFunc(want, have, func(w, h string) bool {
		return w == h || strings.HasPrefix(w, "{") && h != ""
	})
}

// Streams reports whether the answer is an event stream, whose messages are checked one by one.
func (e *Expected) Streams(header http.Header) bool {
	c, err := e.answer.contentOf(header)
	return err == nil && c.streams
}

// CheckHeader checks the answer's header fields.
func (e *Expected) CheckHeader(header http.Header) error {
	return e.explain(e.answer.checkHeader(header))
}

// CheckBody checks the answer's complete body.
func (e *Expected) CheckBody(header http.Header, body []byte) error {
	if e.method == http.MethodHead {
		return nil
	}
	err := e.answer.checkBody(header, body)
	if err == nil && len(e.answer.types) > 0 {
		err = e.answer.checkError(header, body)
	}
	return e.explain(err)
}

// checkError checks what the schema of errors leaves open.
func (a *answer) checkError(header http.Header, body []byte) error {
	var answer struct {
		Error struct {
			Type      string `json:"type"`
			RequestID string `json:"request_id"`
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return err
	}
	if !slices.Contains(a.types, answer.Error.Type) {
		return fmt.Errorf(
			"body: at '/error/type': value must be one of %v in %s", a.types, abridged(body),
		)
	}
	if id := header.Get("X-Request-Id"); answer.Error.RequestID != id {
		return fmt.Errorf("body: names request %q, the header %q", answer.Error.RequestID, id)
	}
	return nil
}

// Messages returns a checker for the messages of an event stream. It calls report for each
// violation.
func (e *Expected) Messages(header http.Header, report func(error)) *Messages {
	c, err := e.answer.contentOf(header)
	if err != nil {
		report(e.explain(err))
	}
	return &Messages{
		schema: c.message, byCursor: c.byCursor,
		report: func(err error) { report(e.explain(err)) },
	}
}

// explain adds to an error which answer it is about.
func (e *Expected) explain(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: not as openapi.yaml describes it:\n%w", e.what, err)
}

// Check checks a complete answer. It ignores pages that are not described.
func (d *Document) Check(method, path string, status int, header http.Header, body []byte) error {
	e, err := d.Expect(method, path, status)
	if e == nil || err != nil {
		return err
	}
	wrong := []error{e.CheckHeader(header)}
	if e.Streams(header) {
		messages := e.Messages(header, func(err error) { wrong = append(wrong, err) })
		messages.Read(bytes.NewReader(body))
	} else {
		wrong = append(wrong, e.CheckBody(header, body))
	}
	return errors.Join(wrong...)
}
