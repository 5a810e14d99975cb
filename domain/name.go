package domain

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxNameLength is the most characters (code points) that a name, a room or a label may have after
// trimming.
const MaxNameLength = 200

// CleanName takes a name as somebody wrote it and gives it without the white space around it. It
// refuses, with an invalid_request that names the field, what is then empty, longer than
// MaxNameLength characters, not UTF-8, or holds a control character.
func CleanName(field, s string) (string, error) {
	name, err := cleanText(field, s)
	if err != nil {
		return "", err
	}
	if name == "" {
		return "", Errorf(
			CodeInvalidRequest, "%s: must be 1 to %d characters", field, MaxNameLength,
		)
	}
	return name, nil
}

// CleanLabel is CleanName for a text that may be empty.
func CleanLabel(field, s string) (string, error) { return cleanText(field, s) }

func cleanText(field, s string) (string, error) {
	if !utf8.ValidString(s) {
		return "", Errorf(CodeInvalidRequest, "%s: must be valid UTF-8", field)
	}
	s = strings.TrimSpace(s)
	if n := utf8.RuneCountInString(s); n > MaxNameLength {
		return "", Errorf(
			CodeInvalidRequest, "%s: must be 1 to %d characters, not %d", field,
			MaxNameLength, n,
		)
	}
	if strings.ContainsFunc(s, unicode.IsControl) {
		return "", Errorf(CodeInvalidRequest, "%s: must not contain control characters", field)
	}
	// Zero-width spaces and marks of direction alone would be a link that nobody sees.
	if s != "" &&
		!strings.ContainsFunc(
			s, func(r rune) bool { return unicode.IsGraphic(r) && !unicode.IsSpace(r) },
		) {
		return "", Errorf(CodeInvalidRequest, "%s: must contain a visible character", field)
	}
	return s, nil
}
