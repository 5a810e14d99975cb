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
	// maxBodyDepth is how deep objects and arrays may stand in one another in it; the contract's
	// own bodies need two.
	maxBodyDepth = 16
	// bodyTimeout is how long a client may take to send it.
	bodyTimeout = 10 * time.Second
)

// limitBodyTime gives a body that is on its way its time. It holds also when the request is refused
// and the body never read: the server reads the rest before it answers.
func (x *exchange) limitBodyTime() {
	if x.r.Body != nil && x.r.Body != http.NoBody {
		// A ResponseWriter without deadlines is no connection.
		_ = http.NewResponseController(x.w).SetReadDeadline(time.Now().Add(bodyTimeout))
	}
}

// readBody reads a whole body. The deadline ends with it: past it the connection is only listened
// to for its end.
func (x *exchange) readBody(into io.Writer) error {
	if x.r.Body == nil || x.r.Body == http.NoBody {
		return nil
	}
	tooLarge := invalid("body: must have at most %d bytes", maxBody)
	if x.r.ContentLength > maxBody {
		return tooLarge
	}
	_, err := io.Copy(into, http.MaxBytesReader(x.w, x.r.Body, maxBody))
	var beyond *http.MaxBytesError
	switch {
	case errors.As(err, &beyond):
		return tooLarge
	case err != nil:
		return invalid("body: could not be read to its end")
	}
	_ = http.NewResponseController(x.w).SetReadDeadline(time.Time{})
	return nil
}

// ignoreBody is for routes that take no body.
func (x *exchange) ignoreBody() error { return x.readBody(io.Discard) }

// object is a request's body: its fields by name, each still as it was sent.
type object map[string]json.RawMessage

// readObject reads the body of a route that takes these fields and no others.
func (x *exchange) readObject(fields ...string) (object, error) {
	o, err := x.readOpenObject()
	if err != nil {
		return nil, err
	}
	return o, o.allow(fields)
}

// readOptionalObject reads the body of a route that can do without one; no body is one without
// fields.
func (x *exchange) readOptionalObject(fields ...string) (object, error) {
	var body bytes.Buffer
	if err := x.readBody(&body); err != nil || body.Len() == 0 {
		return nil, err
	}
	if err := checkContentType(x.r.Header["Content-Type"]); err != nil {
		return nil, err
	}
	o, err := decodeObject(body.Bytes())
	if err != nil {
		return nil, err
	}
	return o, o.allow(fields)
}

// readOpenObject reads the body of a route that ignores the fields it does not know.
func (x *exchange) readOpenObject() (object, error) {
	if err := checkContentType(x.r.Header["Content-Type"]); err != nil {
		return nil, err
	}
	var body bytes.Buffer
	if err := x.readBody(&body); err != nil {
		return nil, err
	}
	return decodeObject(body.Bytes())
}

// checkContentType takes application/json with or without the only charset that JSON has (RFC 8259,
// section 8.1).
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

// decodeObject takes exactly one JSON object in UTF-8, with no field twice. It works on the
// object's own level alone: what is nested deeper is only looked at by who asks for it.
func decodeObject(body []byte) (object, error) {
	if !utf8.Valid(body) {
		return nil, invalid("body: must be UTF-8")
	}
	if depth(body) > maxBodyDepth {
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

// depth gives how deep objects and arrays stand in one another, of a JSON text; of any other text
// it is some number.
func depth(text []byte) int {
	deepest, now, quoted := 0, 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted:
			switch c {
			case '\\':
				i++
			case '"':
				quoted = false
			}
		case c == '"':
			quoted = true
		case c == '{', c == '[':
			now++
			deepest = max(deepest, now)
		case c == '}', c == ']':
			now--
		}
	}
	return deepest
}

// malformed says what is wrong with a JSON text.
func malformed(err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return invalid(
			"body: must be one JSON object: %s, at byte %d", syntax.Error(), syntax.Offset,
		)
	}
	return invalid("body: must be one JSON object")
}

// allow refuses fields that are not among names, which are compared letter by letter.
func (o object) allow(names []string) error {
	for _, name := range slices.Sorted(maps.Keys(o)) {
		if !slices.Contains(names, name) {
			return invalid(
				"body: unknown field %q; allowed are %s", shorten(name), strings.Join(names, ", "),
			)
		}
	}
	return nil
}

// shorten keeps what a client sent from filling the message about it.
func shorten(name string) string {
	const most = 64
	if len(name) <= most {
		return name
	}
	return strings.ToValidUTF8(name[:most], "") + "…"
}

// has says whether the field was sent, be it with null.
func (o object) has(name string) bool {
	_, ok := o[name]
	return ok
}

// text gives a field that must be there and be a string.
func (o object) text(name string) (string, error) {
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
		// Half of an escaped surrogate pair is no character; it would be kept as another one than
		// was sent.
		return "", invalid("%s: holds an escape that is no character", name)
	}
	return s, nil
}

// nullableText gives a field that must be there and be a string or null.
func (o object) nullableText(name string) (*string, error) {
	if string(o[name]) == "null" {
		return nil, nil
	}
	if raw := o[name]; len(raw) > 0 && raw[0] != '"' {
		return nil, invalid("%s: must be a string or null", name)
	}
	s, err := o.text(name)
	if err != nil {
		return nil, err
	}
	return &s, nil
}

// nullableName gives a field that must be there and be a name that people give, or null.
func (o object) nullableName(name string) (*string, error) {
	s, err := o.nullableText(name)
	if err != nil || s == nil {
		return nil, err
	}
	clean, err := domain.CleanName(name, *s)
	if err != nil {
		return nil, err
	}
	return &clean, nil
}
