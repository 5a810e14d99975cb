package domain

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxNameLength is the most characters (code points) of a name, a room or a label after trimming.
const MaxNameLength = 200

// CleanName returns a name without surrounding white space and invisible characters. It returns an
// invalid_request that names the field for a name that is then empty, longer than MaxNameLength
// characters, not UTF-8, without a visible character, with a control character, or with one that
// reverses the text after it.
func CleanName(field, s string) (string, error) { return cleanText(field, s, 1) }

// CleanLabel is CleanName for text that may be empty.
func CleanLabel(field, s string) (string, error) { return cleanText(field, s, 0) }

// cleanText is CleanName for text of at least a number of characters.
func cleanText(field, s string, least int) (string, error) {
	if !utf8.ValidString(s) {
		return "", Errorf(CodeInvalidRequest, "%s: must be valid UTF-8", field)
	}
	s = strings.TrimFunc(s, func(r rune) bool {
		const markAndZeroWidthSpaces = "\uFEFF\u200B\u2060" // what copying from pages leaves
		return unicode.IsSpace(r) || strings.ContainsRune(markAndZeroWidthSpaces, r)
	})
	if n := utf8.RuneCountInString(s); n < least || n > MaxNameLength {
		allowed := fmt.Sprintf("%d to %d", least, MaxNameLength)
		if least == 0 {
			allowed = fmt.Sprintf("at most %d", MaxNameLength)
		}
		return "", Errorf(
			CodeInvalidRequest, "%s: must be %s characters, not %d", field, allowed, n,
		)
	}
	if strings.ContainsFunc(s, unicode.IsControl) {
		return "", Errorf(CodeInvalidRequest, "%s: must not contain control characters", field)
	}
	if i := strings.IndexFunc(s, reverses); i >= 0 {
		r, _ := utf8.DecodeRuneInString(s[i:])
		return "", Errorf(
			CodeInvalidRequest, "%s: must not contain %U, which changes the direction of text",
			field, r,
		)
	}
	// Zero-width spaces and direction marks alone would make an invisible link.
	if s != "" && !Shows(s) {
		return "", Errorf(CodeInvalidRequest, "%s: must contain a visible character", field)
	}
	return s, nil
}
