package domain

import (
	"errors"
	"net/mail"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/text/unicode/norm"
)

// MaxEmailLength is the most bytes of an address, stored or sent (RFC 5321, section 4.5.3.1.3,
// without the angle brackets).
const MaxEmailLength = 254

// mailDomains converts domains for lookup (UTS 46, the profile idna.Lookup) and holds them to the
// lengths of DNS.
var mailDomains = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.VerifyDNSLength(true))

// errDomain means that IDNA rejects a domain.
var errDomain = errors.New("the domain is invalid")

// CleanEmail returns an e-mail address in the form in which it is stored: without surrounding white
// space, in Unicode NFC, and with a domain mapped by IDNA, so that the stored address shows where
// mail goes: `ann@straẞe.example` becomes `ann@strasse.example`. The error is an invalid_request
// that names the field. Display names, angle brackets, several addresses, IP addresses and domains
// that IDNA rejects are invalid.
func CleanEmail(field, s string) (string, error) {
	invalid := Errorf(
		CodeInvalidRequest,
		"%s: must be an e-mail address such as name@example.org, at most %d bytes long",
		field, MaxEmailLength,
	)
	s = strings.TrimSpace(s)
	if !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
		return "", invalid
	}
	if i := strings.IndexFunc(s, invisible); i >= 0 {
		r, _ := utf8.DecodeRuneInString(s[i:])
		return "", Errorf(
			CodeInvalidRequest, "%s: must not contain invisible characters, such as %U", field, r,
		)
	}
	if s = norm.NFC.String(s); len(s) > MaxEmailLength {
		return "", invalid
	}
	// A parsed address that differs from the text had a display name, a comment or quotes around
	// it.
	parsed, err := mail.ParseAddress(s)
	if err != nil || parsed.Address != s || parsed.Name != "" {
		return "", invalid
	}
	local, host := splitEmail(s)
	ascii, err := asciiDomain(host)
	if err != nil {
		return "", invalid
	}
	if !isASCII(host) {
		if host, err = mailDomains.ToUnicode(ascii); err != nil {
			return "", invalid
		}
		// The stored form must map to itself, so that another version of IDNA's tables does not
		// change it.
		if again, err := asciiDomain(host); err != nil || again != ascii {
			return "", invalid
		}
	}
	if len(local)+1+max(len(host), len(ascii)) > MaxEmailLength {
		return "", invalid
	}
	return local + "@" + host, nil
}

// PastedEmail returns the address of a text as it is copied from a mail program, with a name:
// `Ann Smith <ann@example.org>`. It returns any other text as it is.
func PastedEmail(s string) string {
	s = strings.TrimSpace(s)
	if open := strings.LastIndexByte(s, '<'); open >= 0 && strings.HasSuffix(s, ">") {
		address := s[open+1 : len(s)-1]
		if named, err := mail.ParseAddress(s); err == nil && named.Address == address {
			return address
		}
	}
	return s
}

// NormalizeEmail returns the form by which addresses are compared everywhere: two addresses are the
// same account, member and invitation exactly if their forms are equal.
//
//   - The domain is in its IDNA ASCII form, the one that mail is sent to.
//   - The local part is in Unicode NFC and in lower case: people type both `Ann@` and `ann@`, and
//     mail providers do not distinguish them. Outside ASCII, letters are lowered only if they map
//     back to the same upper case: `É` and `é` are equal, `ẞ` and `ß`, or the Turkish `İ` and `i`,
//     are not.
//
// An address with a domain that IDNA rejects never equals one with a valid domain. CleanEmail
// rejects such addresses; older facts may contain them.
func NormalizeEmail(s string) string {
	s = norm.NFC.String(strings.TrimSpace(s))
	local, host := splitEmail(s)
	if host == "" {
		return foldLocalPart(s) // no address
	}
	if ascii, err := asciiDomain(host); err == nil {
		host = ascii
	} else {
		host = strings.Map(lowerASCII, host)
	}
	return foldLocalPart(local) + "@" + host
}

// MailboxOf returns the mailbox of an address, for limits on the mails to one person:
// NormalizeEmail without the sub-address, the local part from `+` on (RFC 5233), which senders may
// choose freely. Some mail providers do not know sub-addresses, so a mailbox must not identify an
// account.
func MailboxOf(email string) string {
	local, host := splitEmail(NormalizeEmail(email))
	if base, _, found := strings.Cut(local, "+"); found && base != "" {
		local = base
	}
	return local + "@" + host
}

// WireAddress returns an address as it is sent, with the domain in ASCII, which servers without
// SMTPUTF8 also accept. It fails if IDNA rejects the domain.
func WireAddress(email string) (string, error) {
	local, host := splitEmail(email)
	ascii, err := asciiDomain(host)
	return local + "@" + ascii, err
}

// asciiDomain returns the IDNA ASCII form of a domain.
func asciiDomain(host string) (string, error) {
	ascii, err := mailDomains.ToASCII(host)
	if err != nil || ascii == "" || strings.HasSuffix(ascii, ".") {
		return "", errDomain
	}
	// Addresses are compared in this form, so it must map to itself.
	if again, err := mailDomains.ToASCII(ascii); err != nil || again != ascii || !isASCII(ascii) {
		return "", errDomain
	}
	return ascii, nil
}

// splitEmail splits an address at its last @. host is empty when there is none.
func splitEmail(s string) (local, host string) {
	at := strings.LastIndexByte(s, '@')
	if at < 0 {
		return s, ""
	}
	return s[:at], s[at+1:]
}

// foldLocalPart returns a composed local part in lower case.
func foldLocalPart(s string) string {
	return norm.NFC.String(strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf {
			return lowerASCII(r)
		}
		// ToLower maps ẞ to ß and the Turkish İ to i, which do not map back.
		if lower := unicode.ToLower(r); lower >= utf8.RuneSelf && unicode.ToUpper(lower) == r {
			return lower
		}
		return r
	}, s))
}

func lowerASCII(r rune) rune {
	if 'A' <= r && r <= 'Z' {
		return r + 'a' - 'A'
	}
	return r
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf })
}
