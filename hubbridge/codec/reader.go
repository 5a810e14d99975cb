package codec

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// reader reads a hub's answer member by member, up to the first flaw. Each of its methods that
// reads a value answers false when it could not, and has then noted why.
type reader struct {
	scanner
	flaw error
}

func newReader(text []byte) *reader {
	r := &reader{scanner: scanner{text: text}}
	if !utf8.Valid(text) {
		r.fail("it is not UTF-8")
	}
	r.space()
	return r
}

// fail notes a flaw, unless there is one.
func (r *reader) fail(format string, args ...any) bool {
	if r.flaw == nil {
		r.flaw = fmt.Errorf(format, args...)
	}
	return false
}

var errNoJSON = errors.New("it is not JSON")

// noJSON notes that the text is no JSON here.
func (r *reader) noJSON() bool {
	if r.flaw == nil {
		r.flaw = errNoJSON
	}
	return false
}

// end gives what was wrong; something behind what was read is.
func (r *reader) end() error {
	if r.space(); r.flaw == nil && r.pos != len(r.text) {
		r.noJSON()
	}
	return r.flaw
}

// given says which members of an object were there, a bit for each.
type given uint16

func (g *given) mark(bit int) bool {
	*g |= 1 << bit
	return true
}

// has holds that the members were all there; names are in the order of the bits.
func (r *reader) has(g given, what string, names ...string) bool {
	for bit, name := range names {
		if g&(1<<bit) == 0 {
			return r.fail("%s has no %s", what, name)
		}
	}
	return true
}

func (r *reader) members(what string, member func(name []byte) bool) bool {
	switch {
	case r.flaw != nil:
		return false
	case r.peek() != '{':
		return r.fail("%s is no object", what)
	}
	return r.object(member) || r.noJSON()
}

func (r *reader) elements(what string, element func() bool) bool {
	if r.peek() != '[' {
		return r.fail("%s: not an array", what)
	}
	return r.array(element) || r.noJSON()
}

// skip passes over a value.
func (r *reader) skip() bool {
	_, ok := r.value()
	return ok || r.noJSON()
}

func (r *reader) word(what string, into *string) bool {
	quoted, ok := r.str()
	if !ok {
		return r.fail("%s: not a string", what)
	}
	*into = string(unquote(quoted.of(r.text)))
	return true
}

// next gives the next value as it is written, and nil when that is null.
func (r *reader) next() ([]byte, bool) {
	s, ok := r.value()
	if !ok {
		return nil, r.noJSON()
	}
	if text := s.of(r.text); string(text) != "null" {
		return text, true
	}
	return nil, true
}

func (r *reader) integer(what string, into *int64) bool {
	text, ok := r.next()
	if !ok {
		return false
	}
	if *into, ok = integer(text); !ok {
		return r.fail("%s: not an integer", what)
	}
	return true
}

func (r *reader) boolean(what string, into *bool) bool {
	text, ok := r.next()
	if !ok {
		return false
	}
	if *into = string(text) == "true"; !*into && string(text) != "false" {
		return r.fail("%s: neither true nor false", what)
	}
	return true
}

func (r *reader) nullableText(what string, into **string) bool {
	if *into = nil; r.peek() == 'n' {
		return r.skip()
	}
	*into = new(string)
	return r.word(what, *into)
}

// nullableTime reads a timestamp and writes it as the contract does.
func (r *reader) nullableTime(what string, into **string) bool {
	var written *string
	if !r.nullableText(what, &written) {
		return false
	}
	if *into = nil; written == nil {
		return true
	}
	canonical, ok := appendTime(nil, []byte(*written))
	if !ok {
		return r.fail("%s: not an RFC 3339 timestamp", what)
	}
	text := string(canonical)
	*into = &text
	return true
}

// nullable reads any value.
func (r *reader) nullable(what string, into *json.RawMessage) bool {
	text, ok := r.next()
	switch *into = nil; {
	case !ok:
		return false
	case text == nil:
		return true
	case len(text) > maxValueBytes:
		return r.fail("%s: %d bytes; at most %d are taken", what, len(text), maxValueBytes)
	case depth(text) > maxValueDepth:
		return r.fail("%s: more than %d arrays and objects in one another", what, maxValueDepth)
	}
	*into = appendCompact(make([]byte, 0, len(text)), text)
	return true
}

func (r *reader) nullableObject(what string, into *json.RawMessage) bool {
	if next := r.peek(); next != '{' && next != 'n' {
		return r.fail("%s: not an object", what)
	}
	return r.nullable(what, into)
}

// depth says how deep arrays and objects of checked JSON stand in one another.
func depth(text []byte) (deepest int) {
	open := 0
	inside := false // a string
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inside && c == '\\':
			i++
		case c == '"':
			inside = !inside
		case inside:
		case c == '{', c == '[':
			open++
			deepest = max(deepest, open)
		case c == '}', c == ']':
			open--
		}
	}
	return deepest
}
