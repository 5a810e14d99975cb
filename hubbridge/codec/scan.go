package codec

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth bounds how deep arrays and objects may stand in one another: what encoding/json takes,
// so that everyone can read what is stored.
const maxDepth = 10000

// scanner steps over JSON text (RFC 8259) and checks it. After a method has answered false the text
// is no JSON and pos means nothing.
type scanner struct {
	text []byte
	pos  int
	// open holds the closing byte of each array and object that value is inside of; kept to be used
	// again.
	open []byte
}

// span is a part of a scanner's text. The zero span is none.
type span struct{ from, to int }

func (s span) of(text []byte) []byte { return text[s.from:s.to] }

func (s span) absent() bool { return s.to == 0 }

// space steps over white space.
func (s *scanner) space() {
	for s.pos < len(s.text) {
		switch s.text[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

// take steps over c, if it comes next.
func (s *scanner) take(c byte) bool {
	if s.pos < len(s.text) && s.text[s.pos] == c {
		s.pos++
		return true
	}
	return false
}

// peek gives the next byte, or 0 at the end.
func (s *scanner) peek() byte {
	if s.pos < len(s.text) {
		return s.text[s.pos]
	}
	return 0
}

// plain tells the bytes that stand in a string for themselves: all but the quote, the backslash and
// control characters.
var plain = func() (t [256]bool) {
	for c := 0x20; c < 0x100; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

// str steps over a string and gives its extent, quotes included.
func (s *scanner) str() (span, bool) {
	from := s.pos
	if !s.take('"') {
		return span{}, false
	}
	for s.pos < len(s.text) {
		c := s.text[s.pos]
		switch {
		case plain[c]:
			s.pos++
		case c == '"':
			s.pos++
			return span{from, s.pos}, true
		case c == '\\':
			if !s.escape() {
				return span{}, false
			}
		default:
			return span{}, false
		}
	}
	return span{}, false
}

// escape steps over a backslash and what it stands before.
func (s *scanner) escape() bool {
	rest := s.text[s.pos+1:]
	if len(rest) == 0 {
		return false
	}
	switch rest[0] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.pos += 2
		return true
	case 'u':
		if len(rest) < 5 {
			return false
		}
		for _, c := range rest[1:5] {
			if hex(c) < 0 {
				return false
			}
		}
		s.pos += 6
		return true
	}
	return false
}

func hex(c byte) rune {
	switch {
	case c >= '0' && c <= '9':
		return rune(c - '0')
	case c >= 'a' && c <= 'f':
		return rune(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return rune(c-'A') + 10
	}
	return -1
}

// number steps over a number.
func (s *scanner) number() bool {
	s.take('-')
	if !s.take('0') && !s.digits() {
		return false
	}
	if s.take('.') && !s.digits() {
		return false
	}
	if s.take('e') || s.take('E') {
		if !s.take('+') {
			s.take('-')
		}
		return s.digits()
	}
	return true
}

// digits steps over one digit or more.
func (s *scanner) digits() bool {
	from := s.pos
	for s.pos < len(s.text) && s.text[s.pos]-'0' <= 9 {
		s.pos++
	}
	return s.pos > from
}

func (s *scanner) literal(word string) bool {
	if end := s.pos + len(word); end <= len(s.text) && string(s.text[s.pos:end]) == word {
		s.pos = end
		return true
	}
	return false
}

// value steps over any value and gives its extent. It does not call itself: depth costs a byte a
// level, not a stack frame.
func (s *scanner) value() (span, bool) {
	from := s.pos
	s.open = s.open[:0]
	for {
		opened, ok := s.enter()
		if !ok {
			return span{}, false
		}
		if opened {
			continue
		}
		more, ok := s.leave()
		if !ok {
			return span{}, false
		}
		if !more {
			return span{from, s.pos}, true
		}
	}
}

// enter steps over a value without parts, or up to the first part of one with some: then opened
// says that a value comes next.
func (s *scanner) enter() (opened, ok bool) {
	switch c := s.peek(); c {
	case '{', '[':
		if len(s.open) == maxDepth {
			return false, false
		}
		s.pos++
		s.space()
		end := c + 2 // both closing brackets are two beyond the opening ones
		if s.take(end) {
			return false, true
		}
		s.open = append(s.open, end)
		return true, end == ']' || s.name()
	case '"':
		_, ok = s.str()
		return false, ok
	case 't':
		return false, s.literal("true")
	case 'f':
		return false, s.literal("false")
	case 'n':
		return false, s.literal("null")
	default:
		return false, s.number()
	}
}

// leave steps from the end of a value to the next value, out of what ends in between; more is false
// when the outermost value has ended.
func (s *scanner) leave() (more, ok bool) {
	for len(s.open) > 0 {
		s.space()
		end := s.open[len(s.open)-1]
		if s.take(',') {
			s.space()
			return true, end == ']' || s.name()
		}
		if !s.take(end) {
			return false, false
		}
		s.open = s.open[:len(s.open)-1]
	}
	return false, true
}

// name steps over a member's name and its colon, up to the value.
func (s *scanner) name() bool {
	if _, ok := s.str(); !ok {
		return false
	}
	return s.colon()
}

func (s *scanner) colon() bool {
	s.space()
	if !s.take(':') {
		return false
	}
	s.space()
	return true
}

// object steps over an object and calls member for each member with its name, unescaped, when the
// scanner stands at the value; member must step over that value. name is valid only during the
// call.
func (s *scanner) object(member func(name []byte) bool) bool {
	if !s.take('{') {
		return false
	}
	s.space()
	if s.take('}') {
		return true
	}
	for {
		quoted, ok := s.str()
		if !ok || !s.colon() || !member(unquote(quoted.of(s.text))) {
			return false
		}
		s.space()
		if s.take('}') {
			return true
		}
		if !s.take(',') {
			return false
		}
		s.space()
	}
}

// array steps over an array and calls element when the scanner stands at an element; element must
// step over it.
func (s *scanner) array(element func() bool) bool {
	if !s.take('[') {
		return false
	}
	s.space()
	if s.take(']') {
		return true
	}
	for {
		if !element() {
			return false
		}
		s.space()
		if s.take(']') {
			return true
		}
		if !s.take(',') {
			return false
		}
		s.space()
	}
}

// unquote gives what a checked string stands for. A half of a surrogate pair without the other is
// U+FFFD. The answer is a part of quoted when there is nothing to unescape.
func unquote(quoted []byte) []byte {
	inner := quoted[1 : len(quoted)-1]
	at := bytes.IndexByte(inner, '\\')
	if at < 0 {
		return inner
	}
	out := append(make([]byte, 0, len(inner)), inner[:at]...)
	for i := at; i < len(inner); {
		if inner[i] != '\\' {
			out = append(out, inner[i])
			i++
			continue
		}
		switch c := inner[i+1]; c {
		case 'u':
			r := fourHex(inner[i+2:])
			i += 6
			if utf16.IsSurrogate(r) {
				r2 := rune(-1)
				if len(inner) >= i+6 && inner[i] == '\\' && inner[i+1] == 'u' {
					r2 = fourHex(inner[i+2:])
				}
				if r = utf16.DecodeRune(r, r2); r != utf8.RuneError {
					i += 6
				}
			}
			out = utf8.AppendRune(out, r)
			continue
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		default:
			out = append(out, c)
		}
		i += 2
	}
	return out
}

func fourHex(b []byte) rune { return hex(b[0])<<12 | hex(b[1])<<8 | hex(b[2])<<4 | hex(b[3]) }

// integer reads a value that is written as a plain integer, within 64 bits.
func integer(text []byte) (int64, bool) {
	for i, c := range text {
		if c-'0' > 9 && (c != '-' || i > 0) {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	return n, err == nil
}
