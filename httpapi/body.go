package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"hubcloud/domain"
)

const (
	// maxBody is the most bytes that a request's body may have.
	maxBody = 64 << 10
	// maxBodyDepth is how deep objects and arrays may be nested in a body. The contract's own
	// bodies need two levels.
	maxBodyDepth = 16
	// bodyTimeout is how long a client may take to send a body.
	bodyTimeout = 10 * time.Second
)

// limitBodyTime sets the deadline for reading the body. The deadline matters even if no handler
// reads the body: the server reads the rest of it before it answers.
func (req *request) limitBodyTime() {
	if req.http.Body != nil && req.http.Body != http.NoBody {
		// A ResponseWriter without deadlines has no connection.
		_ = http.NewResponseController(req.w).SetReadDeadline(time.Now().Add(bodyTimeout))
	}
}

// readBody reads the whole body and then removes the read deadline, which would otherwise end the
// request's context.
func (req *request) readBody(into io.Writer) error {
	if req.http.Body == nil || req.http.Body == http.NoBody {
		return nil
	}
	tooLarge := invalid("body: must be at most %d bytes", maxBody)
	if req.http.ContentLength > maxBody {
		return tooLarge
	}
	_, err := io.Copy(into, http.MaxBytesReader(req.w, req.http.Body, maxBody))
	var beyond *http.MaxBytesError
	switch {
	case errors.As(err, &beyond):
		return tooLarge
	case err != nil:
		return invalid("body: could not be read completely")
	}
	// As in limitBodyTime; on a closed connection the next read fails.
	_ = http.NewResponseController(req.w).SetReadDeadline(time.Time{})
	return nil
}

// discardBody reads the body of a route that takes none.
func (req *request) discardBody() error { return req.readBody(io.Discard) }

// object is a decoded body: the raw JSON of its fields, by name.
type object map[string]json.RawMessage

// readOptionalFields reads a body that may be absent, which is the same as an object without fields.
func (req *request) readOptionalFields(names ...string) *fields {
	var body bytes.Buffer
	if err := req.readBody(&body); err != nil || body.Len() == 0 {
		return &fields{err: err}
	}
	if err := checkContentType(req.http.Header["Content-Type"]); err != nil {
		return &fields{err: err}
	}
	return decodeFields(body.Bytes(), names...)
}

// checkContentType requires application/json, with no charset or UTF-8, the only one that JSON has
// (RFC 8259, section 8.1).
func checkContentType(values []string) error {
	if len(values) == 1 {
		mediaType, params, err := mime.ParseMediaType(values[0])
		if charset, given := params["charset"]; err == nil && mediaType == "application/json" &&
			(!given || strings.EqualFold(charset, "utf-8")) {
			return nil
		}
	}
	return invalid("Content-Type: must be application/json")
}

// decodeObject decodes exactly one JSON object in UTF-8, with or without a byte order mark, and
// rejects repeated fields. It decodes the top level only; nested values are decoded by the methods
// that read them.
func decodeObject(body []byte) (object, error) {
	body = bytes.TrimPrefix(body, []byte("\ufeff"))
	if !utf8.Valid(body) {
		return nil, invalid("body: must be UTF-8")
	}
	if domain.JSONDepth(body) > maxBodyDepth {
		return nil, invalid("body: must be nested at most %d deep", maxBodyDepth)
	}
	if err := json.Unmarshal(body, new(json.RawMessage)); err != nil {
		return nil, malformed(err)
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return nil, invalid("body: must be a JSON object")
	}
	o := object{}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return nil, malformed(err)
		}
		name, _ := token.(string) // a key of an object is nothing else
		if _, repeated := o[name]; repeated {
			return nil, invalid("body: field %q must be given once", shorten(name))
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return nil, malformed(err)
		}
		o[name] = value
	}
	return o, nil
}

// malformed returns the error for a body that is not JSON.
func malformed(err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return invalid(
			"body: must be one JSON object: %s, at byte %d", syntax.Error(), syntax.Offset,
		)
	}
	return invalid("body: must be one JSON object")
}

// allow returns an error if the object has a field that is not in names. Names are case-sensitive.
func (o object) allow(names []string) error {
	for _, name := range slices.Sorted(maps.Keys(o)) {
		if !slices.Contains(names, name) {
			return invalid(
				"body: unknown field %q; allowed fields are %s", shorten(name),
				strings.Join(names, ", "),
			)
		}
	}
	return nil
}

// shorten cuts a string from a client to a length that fits into an error message.
func shorten(name string) string {
	const most = 64
	if len(name) <= most {
		return name
	}
	return strings.ToValidUTF8(name[:most], "") + "…"
}

// has reports whether the object has the field, even with the value null.
func (o object) has(name string) bool {
	_, ok := o[name]
	return ok
}

// fields reads the fields of a body one after the other. err is the first error.
type fields struct {
	object
	err error
}

// readFields reads a body that may have these fields and no others, or any if none is named.
func (req *request) readFields(names ...string) *fields {
	if err := checkContentType(req.http.Header["Content-Type"]); err != nil {
		return &fields{err: err}
	}
	var body bytes.Buffer
	if err := req.readBody(&body); err != nil {
		return &fields{err: err}
	}
	return decodeFields(body.Bytes(), names...)
}

// decodeFields returns the fields of a JSON object that may have these and no others, or any if none
// is named.
func decodeFields(raw []byte, names ...string) *fields {
	o, err := decodeObject(raw)
	if err == nil && len(names) > 0 {
		err = o.allow(names)
	}
	return &fields{o, err}
}

// read returns a field as decode does, the zero value after an error.
func read[T any](f *fields, name string, decode func(name string) (T, error)) (value T) {
	if f.err == nil {
		value, f.err = decode(name)
	}
	return value
}

// text returns a required string.
func (f *fields) text(name string) string { return read(f, name, f.stringField) }

// require sets an error unless a condition holds or there is an error already.
func (f *fields) require(ok bool, err error) {
	if f.err == nil && !ok {
		f.err = err
	}
}

// stringField returns a required string.
func (o object) stringField(name string) (string, error) {
	raw, ok := o[name]
	if !ok {
		return "", invalid("%s: is required", name)
	}
	if raw[0] != '"' {
		return "", invalid("%s: must be a string", name)
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", invalid("%s: must be a string", name)
	}
	if strings.ContainsRune(s, utf8.RuneError) && !bytes.ContainsRune(raw, utf8.RuneError) {
		// An escaped half of a surrogate pair would be stored as another character than was sent.
		return "", invalid("%s: must not contain half of an escaped surrogate pair", name)
	}
	return s, nil
}

// nullableString returns a required field that is a string, or nil for null.
func (o object) nullableString(name string) (*string, error) {
	if string(o[name]) == "null" {
		return nil, nil
	}
	if raw := o[name]; len(raw) > 0 && raw[0] != '"' {
		return nil, invalid("%s: must be a string or null", name)
	}
	s, err := o.stringField(name)
	if err != nil {
		return nil, err
	}
	return &s, nil
}

// nullableName returns a name, cleaned up, or nil for null and for a field that is absent.
func (o object) nullableName(name string) (*string, error) {
	if !o.has(name) {
		return nil, nil
	}
	s, err := o.nullableString(name)
	if err != nil || s == nil {
		return nil, err
	}
	clean, err := domain.CleanName(name, *s)
	return &clean, err
}

// name returns a required name, cleaned up.
func (o object) name(field string) (string, error) {
	s, err := o.stringField(field)
	if err != nil {
		return "", err
	}
	return domain.CleanName(field, s)
}
