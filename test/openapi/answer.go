package openapi

import (
	"errors"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// answer is what the document says about one status of an operation.
type answer struct {
	headers  map[string]headerField // by canonical name
	contents map[string]content     // by media type; none: the body is empty
	// types are the error types of an error; none for other answers.
	types []string
}

type headerField struct {
	required bool
	number   bool
	schema   schema
}

type content struct {
	schema  schema
	streams bool
	message schema
	// byCursor reports that the id of a message is the cursor of its event.
	byCursor bool
}

// Statuses returns the described statuses of the operation, ascending.
func (o *Operation) Statuses() []int { return slices.Sorted(maps.Keys(o.answers)) }

// Types returns the error types that are described for a status.
func (o *Operation) Types(status int) []string { return o.answers[status].types }

func (d *Document) answers(responses place) (map[int]*answer, error) {
	all := map[int]*answer{}
	for status, response := range responses.entries() {
		code, err := strconv.Atoi(status)
		if err != nil {
			return nil, fmt.Errorf("status %q: %w", status, err)
		}
		if all[code], err = d.answer(response); err != nil {
			return nil, fmt.Errorf("status %s: %w", status, err)
		}
	}
	return all, nil
}

func (d *Document) answer(response place) (*answer, error) {
	a := &answer{headers: map[string]headerField{}, contents: map[string]content{}}
	for name, field := range response.get("headers").entries() {
		schema, err := d.compile(field.get("schema"))
		if err != nil {
			return nil, err
		}
		a.headers[http.CanonicalHeaderKey(name)] = headerField{
			required: field.get("required").
				text() ==
				"true", number: field.get("schema", "type").text() == "integer", schema: schema,
		}
	}
	for mediaType, body := range response.get("content").entries() {
		var c content
		var err error
		if c.schema, err = d.compile(body.get("schema")); err != nil {
			return nil, err
		}
		if message := body.get("x-message"); message.exists() {
			c.streams = true
			c.byCursor = nameOf(message.get("properties", "id")) == "Cursor"
			if c.message, err = d.compile(message); err != nil {
				return nil, err
			}
		}
		a.contents[mediaType] = c
		a.types = body.get("x-error-types").texts()
	}
	return a, nil
}

// plainFields are header fields of HTTP itself, which need no description.
var plainFields = []string{
	"Cache-Control",
	"Connection",
	"Content-Length",
	"Content-Type",
	"Date",
	"Transfer-Encoding",
	"Vary",
	"X-Content-Type-Options",
}

// checkHeader checks the header fields.
func (a *answer) checkHeader(header http.Header) error {
	var wrong []error
	for _, name := range slices.Sorted(maps.Keys(a.headers)) {
		field, values := a.headers[name], header[name]
		switch {
		case len(values) == 0 && field.required:
			wrong = append(wrong, fmt.Errorf("header %s: is missing", name))
		case len(values) > 1:
			wrong = append(wrong, fmt.Errorf("header %s: is given %d times", name, len(values)))
		case len(values) == 1:
			if err := field.schema(field.value(values[0])); err != nil {
				wrong = append(wrong, fmt.Errorf("header %s, %q: %w", name, values[0], err))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(header)) {
		if _, described := a.headers[name]; !described && !slices.Contains(plainFields, name) {
			wrong = append(wrong, fmt.Errorf("header %s: is not described", name))
		}
	}
	return errors.Join(wrong...)
}

// value returns a header field as its schema expects it: a decimal number as a number if the schema
// is one of integers, anything else as a string.
func (f headerField) value(text string) any {
	if n, err := strconv.ParseInt(text, 10, 64); f.number && err == nil &&
		strconv.FormatInt(n, 10) == text {
		return n
	}
	return text
}

// contentOf returns the description of an answer's media type.
func (a *answer) contentOf(header http.Header) (content, error) {
	mediaType, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	c, ok := a.contents[mediaType]
	if err != nil || !ok {
		return content{}, fmt.Errorf(
			"header Content-Type, %q: described are %s", header.Get("Content-Type"),
			strings.Join(slices.Sorted(maps.Keys(a.contents)), ", "),
		)
	}
	return c, nil
}

// checkBody checks a complete body.
func (a *answer) checkBody(header http.Header, body []byte) error {
	if len(a.contents) == 0 {
		if len(body) > 0 {
			return fmt.Errorf("body: none is described, but there is %s", abridged(body))
		}
		return nil
	}
	c, err := a.contentOf(header)
	if err != nil {
		return err
	}
	mediaType, _, _ := mime.ParseMediaType(header.Get("Content-Type"))
	if mediaType != "application/json" {
		return nil
	}
	value, err := decode(body)
	if err == nil {
		err = c.schema(value)
	}
	if err != nil {
		return fmt.Errorf("body: %w\nin %s", err, abridged(body))
	}
	return nil
}

func abridged(body []byte) string {
	const most = 2000
	if len(body) > most {
		return string(body[:most]) + "…"
	}
	return string(body)
}
