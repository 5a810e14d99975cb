package domain

import (
	"net/mail"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Limits of what people write.
const (
	// MaxNameLength is the most characters (code points) that a name, a room or a label may have after trimming.
	MaxNameLength = 200
	// MaxEmailLength is the most bytes that an address may have (RFC 5321, section 4.5.3.1.3, less the angle brackets).
	MaxEmailLength = 254
)

// CleanName takes a name as somebody wrote it and gives it without the white space around it. It refuses, with an invalid_request
// that names the field, what is then empty, longer than MaxNameLength characters, not UTF-8, or holds a control character.
func CleanName(field, s string) (string, error) {
	name, err := cleanText(field, s)
	if err != nil {
		return "", err
	}
	if name == "" {
		return "", Errorf(CodeInvalidRequest, "%s: must not be empty; 1 to %d characters are allowed", field, MaxNameLength)
	}
	return name, nil
}

// CleanLabel is CleanName for a text that may be empty.
func CleanLabel(field, s string) (string, error) { return cleanText(field, s) }

func cleanText(field, s string) (string, error) {
	if !utf8.ValidString(s) {
		return "", Errorf(CodeInvalidRequest, "%s: is not valid UTF-8", field)
	}
	s = strings.TrimSpace(s)
	if n := utf8.RuneCountInString(s); n > MaxNameLength {
		return "", Errorf(CodeInvalidRequest, "%s: has %d characters; 1 to %d are allowed", field, n, MaxNameLength)
	}
	if strings.ContainsFunc(s, unicode.IsControl) {
		return "", Errorf(CodeInvalidRequest, "%s: must not hold control characters", field)
	}
	// Zero-width spaces and marks of direction alone would be a link that nobody sees.
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return unicode.IsGraphic(r) && !unicode.IsSpace(r) }) {
		return "", Errorf(CodeInvalidRequest, "%s: must hold something that can be seen", field)
	}
	return s, nil
}

// CleanEmail takes an e-mail address as somebody wrote it and gives it without the white space around it and composed (Unicode NFC). It
// refuses, with an invalid_request that names the field, everything that is not one bare address: a name beside it, angle brackets, several.
func CleanEmail(field, s string) (string, error) {
	refused := Errorf(CodeInvalidRequest, "%s: is no e-mail address; allowed is one like name@example.org, of %d bytes at most", field, MaxEmailLength)
	s = strings.TrimSpace(s)
	if !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
		return "", refused
	}
	if s = norm.NFC.String(s); len(s) > MaxEmailLength {
		return "", refused
	}
	// A parsed address that differs from the text had a display name, a comment or quotes around it.
	parsed, err := mail.ParseAddress(s)
	if err != nil || parsed.Address != s || parsed.Name != "" {
		return "", refused
	}
	return s, nil
}

// NormalizeEmail gives the form by which addresses are compared: without the white space around, composed, in lower case. Mail providers that
// tell `Ann@` from `ann@` are not seen; people who type both are. No other letters are taken for one another: what compares as one address
// must not be two people's mailboxes.
func NormalizeEmail(s string) string {
	s = strings.Map(func(r rune) rune {
		lower := unicode.ToLower(r)
		if r >= utf8.RuneSelf && lower < utf8.RuneSelf {
			return r // Go writes the Turkish İ as a plain i
		}
		return lower
	}, norm.NFC.String(strings.TrimSpace(s)))
	return norm.NFC.String(s)
}
