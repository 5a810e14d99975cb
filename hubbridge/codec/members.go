package codec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"hubcloud/hubbridge/protocol"
)

// decoder reads JSON as encoding/json does: an object may have several members of one name, and an
// unpaired surrogate stands for U+FFFD.
type decoder struct{ *jsontext.Decoder }

var (
	errNotJSON = errors.New("it is not JSON")
	errNotUTF8 = errors.New("it is not UTF-8")
)

// A member describes a member of an object. Of several members with the same name each must be
// valid, and the last one counts.
type member struct {
	name     string
	required bool
	read     valueReader
}

// A valueReader reads the value that comes next; what names the value in errors.
type valueReader func(d decoder, what memberOf) error

// memberOf names a member and its object.
type memberOf struct{ member, object string }

func (m memberOf) String() string { return m.member + " of " + m.object }

func required(name string, read valueReader) member { return member{name, true, read} }
func optional(name string, read valueReader) member { return member{name, false, read} }

// parseObject reads text, which must be one object. Errors call the object what.
func parseObject(text []byte, what string, members ...member) error {
	if !utf8.Valid(text) {
		return errNotUTF8
	}
	// AllowInvalidUTF8 is for unpaired surrogates, which are escapes.
	d := decoder{jsontext.NewDecoder(
		bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true),
	)}
	if err := d.readObject(what, members...); err != nil {
		return err
	}
	if _, err := d.ReadToken(); err != io.EOF {
		return errNotJSON
	}
	return nil
}

// readObject reads an object and fails if a required member is absent. Other members are skipped.
func (d decoder) readObject(what string, members ...member) error {
	if d.PeekKind() != '{' {
		return fmt.Errorf("%s is not an object", what)
	}
	if _, err := d.ReadToken(); err != nil {
		return errNotJSON
	}
	found := make([]bool, len(members))
	for d.PeekKind() != '}' {
		name, err := d.ReadValue()
		if err != nil {
			return errNotJSON
		}
		i := indexOf(members, name)
		if i < 0 {
			if d.SkipValue() != nil {
				return errNotJSON
			}
			continue
		}
		found[i] = true
		if err := members[i].read(d, memberOf{members[i].name, what}); err != nil {
			return err
		}
	}
	if _, err := d.ReadToken(); err != nil {
		return errNotJSON
	}
	for i, m := range members {
		if m.required && !found[i] {
			return fmt.Errorf("%s has no %s", what, m.name)
		}
	}
	return nil
}

// indexOf returns the index of the member with the quoted name; -1 for none.
func indexOf(members []member, quoted jsontext.Value) int {
	name := unescape(quoted)
	return slices.IndexFunc(members, func(m member) bool { return m.name == string(name) })
}

// readArray reads an array; element must read one element.
func (d decoder) readArray(what memberOf, element func() error) error {
	if d.PeekKind() != '[' {
		return fmt.Errorf("%s: not an array", what)
	}
	if _, err := d.ReadToken(); err != nil {
		return errNotJSON
	}
	for d.PeekKind() != ']' {
		if err := element(); err != nil {
			return err
		}
	}
	if _, err := d.ReadToken(); err != nil {
		return errNotJSON
	}
	return nil
}

// readNullable returns the next value as it is written, valid until the next read; nil for null.
func (d decoder) readNullable() (jsontext.Value, error) {
	text, err := d.ReadValue()
	if err != nil {
		return nil, errNotJSON
	}
	if text.Kind() == 'n' {
		return nil, nil
	}
	return text, nil
}

// rawInto reads any value as it is written; null is nil.
func rawInto(into *jsontext.Value) valueReader {
	return func(d decoder, _ memberOf) error {
		text, err := d.readNullable()
		*into = bytes.Clone(text)
		return err
	}
}

func stringInto(into *string) valueReader {
	return func(d decoder, what memberOf) error {
		if d.PeekKind() != '"' {
			return fmt.Errorf("%s: not a string", what)
		}
		token, err := d.ReadToken()
		if err != nil {
			return errNotJSON
		}
		*into = strings.ReplaceAll(token.String(), "\x00", "\uFFFD") // as in appendCompact
		return nil
	}
}

// stringOrSkipInto reads a string and skips a value of another type.
func stringOrSkipInto(into *string) valueReader {
	return func(d decoder, what memberOf) error {
		if d.PeekKind() == '"' {
			return stringInto(into)(d, what)
		}
		_, err := d.readNullable()
		return err
	}
}

// integerInto reads a plain integer, which excludes 1.0 and 1e3.
func integerInto(into *int64) valueReader {
	return func(d decoder, what memberOf) error {
		text, err := d.readNullable()
		if err != nil {
			return err
		}
		n, ok := parseInteger(text)
		if !ok {
			return fmt.Errorf("%s: not an integer", what)
		}
		*into = n
		return nil
	}
}

// nullableNumberInto reads a number of the hub's log, or null, which is nil.
func nullableNumberInto(into **uint64) valueReader {
	return func(d decoder, what memberOf) error {
		*into = nil
		text, err := d.readNullable()
		if err != nil || text == nil {
			return err
		}
		n, ok := parseNumber(json.RawMessage(text))
		if !ok {
			return fmt.Errorf("%s: not an integer from 0 to %d", what, int64(protocol.MaxNumber))
		}
		*into = &n
		return nil
	}
}

func boolInto(into *bool) valueReader {
	return func(d decoder, what memberOf) error {
		text, err := d.readNullable()
		if err != nil {
			return err
		}
		if text.Kind() != 't' && text.Kind() != 'f' {
			return fmt.Errorf("%s: neither true nor false", what)
		}
		*into = text.Kind() == 't'
		return nil
	}
}

// nullableStringInto reads a string or null, which is nil.
func nullableStringInto(into **string) valueReader {
	return func(d decoder, what memberOf) error {
		*into = nil
		if d.PeekKind() == 'n' {
			_, err := d.readNullable()
			return err
		}
		*into = new(string)
		return stringInto(*into)(d, what)
	}
}

// nullableTimeInto reads an RFC 3339 timestamp, rewritten in domain.TimeLayout, or null, which is
// nil.
func nullableTimeInto(into **string) valueReader {
	return func(d decoder, what memberOf) error {
		var written *string
		*into = nil
		if err := nullableStringInto(&written)(d, what); err != nil || written == nil {
			return err
		}
		canonical, ok := appendTime(nil, []byte(*written))
		if !ok {
			return fmt.Errorf("%s: not an RFC 3339 timestamp", what)
		}
		text := string(canonical)
		*into = &text
		return nil
	}
}

// nullableValueInto reads any value as appendCompact writes it; null is nil. It fails over
// maxValueBytes and protocol.MaxDepth, and for a number that no float64 can hold.
func nullableValueInto(into *json.RawMessage) valueReader {
	return func(d decoder, what memberOf) error {
		*into = nil
		text, err := d.readNullable()
		s := scanner{text: text}
		s.skipValue()
		switch {
		case err != nil || text == nil:
			return err
		case len(text) > maxValueBytes:
			return fmt.Errorf(
				"%s: %d bytes; at most %d are allowed", what, len(text), maxValueBytes,
			)
		case s.deepest > protocol.MaxDepth:
			return fmt.Errorf("%s: nested deeper than %d levels", what, protocol.MaxDepth)
		case s.infinite:
			return fmt.Errorf("%s: a number beyond those that a double can hold", what)
		}
		*into = appendCompact(make([]byte, 0, len(text)), text)
		return nil
	}
}

// nullableObjectInto is nullableValueInto for an object.
func nullableObjectInto(into *json.RawMessage) valueReader {
	return func(d decoder, what memberOf) error {
		if next := d.PeekKind(); next != '{' && next != 'n' {
			return fmt.Errorf("%s: not an object", what)
		}
		return nullableValueInto(into)(d, what)
	}
}
