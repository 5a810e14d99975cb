package codec

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"hubcloud/hubbridge/protocol"
)

var (
	errNotJSON = errors.New("it is not JSON")
	errNotUTF8 = errors.New("it is not UTF-8")
)

// fields has the members of a JSON object. Its methods read them as the types that they must have.
// err is the first error; the methods return zero values for what is wrong or absent.
type fields struct {
	// what names the object in errors.
	what string
	// values are the members' values as they are written.
	values map[string][]byte
	err    error
}

// readFields reads text, which must be one object.
func readFields(text []byte, what string) *fields {
	f := &fields{what: what, values: map[string][]byte{}}
	if !utf8.Valid(text) {
		f.err = errNotUTF8
		return f
	}
	s := scanner{text: text}
	s.skipSpace()
	if s.peek() != '{' {
		f.fail("%s is not an object", what)
		return f
	}
	ok := s.eachMember(func(name []byte) bool {
		value, ok := s.skipValue()
		f.values[string(name)] = value.of(text)
		return ok
	})
	s.skipSpace()
	if !ok || s.pos < len(text) {
		f.values, f.err = nil, errNotJSON
	}
	return f
}

func (f *fields) fail(format string, args ...any) {
	if f.err == nil {
		f.err = fmt.Errorf(format, args...)
	}
}

// reject notes that a member is not what it must be.
func (f *fields) reject(name, format string, args ...any) {
	f.fail("%s of %s: %s", name, f.what, fmt.Sprintf(format, args...))
}

// required returns a value as it is written.
func (f *fields) required(name string) []byte {
	value, ok := f.values[name]
	if !ok {
		f.fail("%s has no %s", f.what, name)
	}
	return value
}

// nullable returns a value as it is written; nil for null and for an absent member.
func (f *fields) nullable(name string) []byte {
	value := f.values[name]
	if string(value) == "null" {
		return nil
	}
	return value
}

func isString(value []byte) bool { return len(value) > 0 && value[0] == '"' }

// text returns the text of a string, with U+FFFD for U+0000 as in appendCompact.
func text(quoted []byte) string {
	return strings.ReplaceAll(string(unescape(quoted)), "\x00", "\uFFFD")
}

func (f *fields) text(name string) string {
	value := f.required(name)
	if !isString(value) {
		f.reject(name, "not a string")
		return ""
	}
	return text(value)
}

// integer returns a plain integer, which excludes 1.0 and 1e3.
func (f *fields) integer(name string) int64 {
	n, ok := parseInteger(f.required(name))
	if !ok {
		f.reject(name, "not an integer")
	}
	return n
}

func (f *fields) flag(name string) bool {
	value := string(f.required(name))
	if value != "true" && value != "false" {
		f.reject(name, "neither true nor false")
	}
	return value == "true"
}

// array calls element with each element of an array.
func (f *fields) array(name string, element func(value []byte) error) {
	s := scanner{text: f.required(name)}
	if s.peek() != '[' {
		f.reject(name, "not an array")
		return
	}
	s.eachElement(func() bool {
		value, ok := s.skipValue()
		if err := element(value.of(s.text)); err != nil {
			f.fail("%w", err)
		}
		return ok && f.err == nil
	})
}

// nullableNumber returns a number of the hub's log.
func (f *fields) nullableNumber(name string) *uint64 {
	value := f.nullable(name)
	if value == nil {
		return nil
	}
	n, ok := parseNumber(value)
	if !ok {
		f.reject(name, "not an integer from 0 to %d", int64(protocol.MaxNumber))
	}
	return &n
}

func (f *fields) nullableText(name string) *string {
	if f.nullable(name) == nil {
		return nil
	}
	value := f.text(name)
	return &value
}

// nullableTime returns an RFC 3339 timestamp, rewritten in domain.TimeLayout.
func (f *fields) nullableTime(name string) *string {
	written := f.nullableText(name)
	if written == nil {
		return nil
	}
	canonical, ok := appendTime(nil, []byte(*written))
	if !ok {
		f.reject(name, "not an RFC 3339 timestamp")
	}
	rewritten := string(canonical)
	return &rewritten
}

// nullableValue returns any value as appendCompact writes it. It must have at most maxValueBytes
// and protocol.MaxDepth levels, and no number that no float64 can hold.
func (f *fields) nullableValue(name string) json.RawMessage {
	value := f.nullable(name)
	if value == nil {
		return nil
	}
	s := scanner{text: value}
	s.skipValue()
	switch {
	case len(value) > maxValueBytes:
		f.reject(name, "%d bytes; at most %d are allowed", len(value), maxValueBytes)
	case s.deepest > protocol.MaxDepth:
		f.reject(name, "nested deeper than %d levels", protocol.MaxDepth)
	case s.infinite:
		f.reject(name, "a number beyond those that a double can hold")
	}
	return appendCompact(make([]byte, 0, len(value)), value)
}

// nullableObject is nullableValue for an object.
func (f *fields) nullableObject(name string) json.RawMessage {
	if value := f.nullable(name); value != nil && value[0] != '{' {
		f.reject(name, "not an object")
	}
	return f.nullableValue(name)
}
