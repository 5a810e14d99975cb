package domain

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// PlainLine returns a text that a hub or a person wrote as it may stand in a line of a page, a
// mail, a file or a terminal: valid UTF-8, with a space for each control character and line
// separator, which act on terminals, and without the characters of PlainPage.
func PlainLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp) {
			return ' '
		}
		return undirected(r)
	}, strings.ToValidUTF8(s, string(utf8.RuneError)))
	return strings.TrimSpace(s)
}

// PlainPage returns a page without the characters that set the direction of the text after them.
// One that nothing ends reverses the rest of a line, also beyond an element <bdi> around it.
func PlainPage(page []byte) []byte { return bytes.Map(undirected, page) }

// undirected returns r, or -1 if it sets the direction of the text after it.
func undirected(r rune) rune {
	if unicode.Is(unicode.Bidi_Control, r) {
		return -1
	}
	return r
}

// reverses reports whether r changes the direction of a text to the end of its line. People write
// the other characters of Bidi_Control, the marks, between words of different directions.
func reverses(r rune) bool { return '\u202A' <= r && r <= '\u202E' || '\u2066' <= r && r <= '\u2069' }

// invisible reports whether r shows nothing, not even a space. Within a word, some such characters
// shape letters or emoji.
func invisible(r rune) bool {
	const brailleBlank = '\u2800'
	return r == brailleBlank ||
		unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// Shows reports whether a text has a visible character.
func Shows(text string) bool { return strings.ContainsFunc(text, visible) }

// visible reports whether r shows something.
func visible(r rune) bool { return unicode.IsGraphic(r) && !unicode.IsSpace(r) && !invisible(r) }
