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

// MaxEmailLength is the most bytes that an address may have (RFC 5321, section 4.5.3.1.3, less the
// angle brackets), as it is stored and as it is sent.
const MaxEmailLength = 254

// mailDomains converts domains for lookup (UTS 46, the profile idna.Lookup) and holds them to the
// lengths of DNS.
var mailDomains = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.VerifyDNSLength(true))

// errDomain says that IDNA rejects a domain.
var errDomain = errors.New("the domain is invalid")

// CleanEmail returns an e-mail address as it is stored: without the white space around it, composed
// (Unicode NFC), and with a domain outside ASCII in the form that IDNA gives it. So what is stored
// shows where mail goes: `ann@straẞe.example` becomes `ann@strasse.example`. The Error is an
// invalid_request that names the field, for everything that is not one bare address with a domain
// that IDNA accepts: a name beside it, angle brackets, several addresses, an IP address in
// brackets.
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
		// What is stored must be a fixed point: another version of IDNA's tables then maps nothing
		// in it.
		if again, err := asciiDomain(host); err != nil || again != ascii {
			return "", invalid
		}
	}
	if len(local)+1+max(len(host), len(ascii)) > MaxEmailLength {
		return "", invalid
	}
	return local + "@" + host, nil
}

// NormalizeEmail returns the form by which addresses are compared. It is the only one: two
// addresses are one account, one member and one invitation exactly if their forms are equal.
//
//   - The domain is in its IDNA ASCII form, the one that mail is sent to.
//   - The local part is composed (NFC) and in lower case. People type both `Ann@` and `ann@`, and
//     mail providers that tell them apart are not seen. Beyond ASCII only letters that are each
//     other's only case are taken for one another: `É` and `é`, but not `ẞ` and `ß`, nor the
//     Turkish `İ` and `i`.
//
// An address whose domain IDNA rejects is equal to none whose domain it accepts. CleanEmail accepts
// no such address; facts from before it checked domains can hold one.
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

// MailboxOf returns the mailbox that mails to an address arrive in, for bounds on what one person
// is mailed: NormalizeEmail without a sub-address, the part of the local part from a `+` on (RFC
// 5233), of which everybody has as many as anybody cares to write. Not every mail provider knows
// sub-addresses: two people may have mailboxes that differ in one, so it must not name an account.
func MailboxOf(email string) string {
	local, host := splitEmail(NormalizeEmail(email))
	if base, _, found := strings.Cut(local, "+"); found && base != "" {
		local = base
	}
	return local + "@" + host
}

// WireAddress returns an address as it is sent: with the domain in ASCII, which servers without
// SMTPUTF8 take too. It fails for an address whose domain IDNA rejects.
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
	// The form is what addresses are compared by, so it must have no other form itself.
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
		// Go writes ẞ as ß and the Turkish İ as a plain i: neither is a pair.
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
