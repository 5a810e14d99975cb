package domain_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/text/unicode/norm"

	"hubcloud/domain"
)

// writings returns the other spellings of a text with r in it: every case, every normal form of
// Unicode, and the result of IDNA's mapping.
func writings(r rune) []string {
	s := string(r)
	all := []string{
		s, strings.ToLower(s), strings.ToUpper(s), strings.ToTitle(s), string(unicode.ToLower(r)),
		string(unicode.ToUpper(r)),
		norm.NFC.String(s), norm.NFD.String(s), norm.NFKC.String(s), norm.NFKD.String(s),
		strings.ToLower(norm.NFKC.String(s)),
	}
	for fold := unicode.SimpleFold(r); fold != r; fold = unicode.SimpleFold(fold) {
		all = append(all, string(fold))
	}
	for _, profile := range []*idna.Profile{
		idna.Lookup, idna.Display, idna.New(idna.MapForLookup(), idna.Transitional(true)),
	} {
		if mapped, err := profile.ToUnicode(s); err == nil {
			all = append(all, mapped)
		}
	}
	var different []string
	for _, w := range all {
		if w != s && !slices.Contains(different, w) {
			different = append(different, w)
		}
	}
	return different
}

// Regression: `ann@straẞe.example` compared as `ann@straße.example` but was mailed to
// `ann@strasse.example`, so the owner of that domain received the links of another person's
// account. The test tries every code point with several spellings, in the local part and in the
// domain.
func TestOneAccountIsOneMailbox(t *testing.T) {
	t.Parallel()
	tried, accepted := 0, 0
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if !utf8.ValidRune(r) {
			continue
		}
		others := writings(r)
		if len(others) == 0 {
			continue
		}
		tried++
		for _, place := range []string{"a%sb@example.org", "ann@a%sb.example", "ann@%s.example"} {
			given := fmt.Sprintf(place, string(r))
			stored, err := domain.CleanEmail("email", given)
			if err != nil {
				continue // refused
			}
			accepted++
			mailed, err := domain.WireAddress(stored)
			if err != nil {
				t.Fatalf("CleanEmail(%+q): got %+q, which cannot be mailed: %v", given, stored, err)
			}
			if again, err := domain.CleanEmail("email", stored); err != nil || again != stored {
				t.Fatalf(
					"CleanEmail(%+q): got %+q, cleaned again %+q, %v", given, stored, again, err,
				)
			}
			normal := domain.NormalizeEmail(given)
			for _, same := range []string{stored, mailed, normal} {
				if domain.NormalizeEmail(same) != normal {
					t.Fatalf(
						"%+q compares as %+q, and %+q as %+q", given, normal, same,
						domain.NormalizeEmail(same),
					)
				}
			}
			_, host, _ := strings.Cut(mailed, "@")
			if !strings.HasSuffix(normal, "@"+host) {
				t.Fatalf("%+q: got normal form %+q, but mail goes to %+q", given, normal, mailed)
			}
			for _, w := range others {
				other := fmt.Sprintf(place, w)
				cleaned, err := domain.CleanEmail("email", other)
				if err != nil || domain.NormalizeEmail(cleaned) != normal {
					continue // refused, or another account
				}
				there, err := domain.WireAddress(cleaned)
				if err != nil {
					t.Fatalf("%+q: %v", cleaned, err)
				}
				theirLocal, theirHost, _ := strings.Cut(there, "@")
				local, _, _ := strings.Cut(mailed, "@")
				if theirHost != host || theirLocal != local && !casePair(local, theirLocal) {
					t.Fatalf(
						"%+q and %+q are one account, and two mailboxes: %+q and %+q", given, other,
						mailed, there,
					)
				}
			}
		}
	}
	if tried < 5000 || accepted < 5000 {
		t.Errorf("got only %d code points tried, %d addresses accepted", tried, accepted)
	}
}

// casePair reports whether two local parts differ only in the case of letters that have exactly two
// cases.
func casePair(a, b string) bool {
	as, bs := []rune(norm.NFD.String(a)), []rune(norm.NFD.String(b))
	if len(as) != len(bs) {
		return false
	}
	for i := range as {
		x, y := as[i], bs[i]
		if x != y && (unicode.ToLower(x) != y || unicode.ToUpper(y) != x) &&
			(unicode.ToLower(y) != x || unicode.ToUpper(x) != y) {
			return false
		}
	}
	return true
}

// All spellings of a domain must compare as equal.
func TestDomainsCompareInASCII(t *testing.T) {
	t.Parallel()
	for _, same := range [][]string{
		{"ann@stra\u1e9ee.example", "ann@strasse.example", "ann@STRASSE.example"},
		{
			"ann@stra\u00dfe.example", "ann@xn--strae-oqa.example", "Ann@XN--STRAE-OQA.Example",
			"ann@stra\u00dfe\u3002example",
		},
		{
			"ann@b\u00fccher.example", "ann@bu\u0308cher.example", "ann@B\u00dcCHER.EXAMPLE",
			"ann@xn--bcher-kva.example", "ann@\uff42\u00fccher.example",
		},
	} {
		for _, s := range same {
			stored, err := domain.CleanEmail("email", s)
			if err != nil || domain.NormalizeEmail(s) != domain.NormalizeEmail(same[0]) ||
				domain.AccountKey(stored) != domain.AccountKey(same[0]) {
				t.Errorf(
					"%q and %q: stored as %q, %v; they compare as %q and %q", same[0], s, stored,
					err, domain.NormalizeEmail(same[0]), domain.NormalizeEmail(s),
				)
			}
		}
	}
	if stored, err := domain.CleanEmail(
		"email", "ann@stra\u1e9ee.example",
	); stored != "ann@strasse.example" ||
		err != nil {
		t.Errorf("CleanEmail: got %q, %v, want the domain that mail goes to", stored, err)
	}
	a := domain.NormalizeEmail("ann@stra\u1e9ee.example")
	b := domain.NormalizeEmail("ann@stra\u00dfe.example")
	if a == b {
		t.Errorf("got %q for both, want different forms", a)
	}
	for _, bad := range []string{
		"ann@a_b.example", "ann@-a.example", "ann@[192.0.2.1]", "ann@xn--a.example",
		"ann@example\u3002", "ann@a\u3002\u3002b", "ann@a\u200bb\u2024.example",
		"ann@" + strings.Repeat("a", 64) + ".example", "ann@\u202eexample.org",
		"ann@\u05d0a.example", "ann@xn--strae-oqa\u00df.example",
	} {
		if stored, err := domain.CleanEmail("email", bad); domain.CodeOf(
			orNoError(err),
		) != domain.CodeInvalidRequest ||
			!strings.HasPrefix(err.(*domain.Error).Message, "email: ") {
			t.Errorf("CleanEmail(%q): got %q, %v, want invalid_request", bad, stored, err)
		}
	}
}

func orNoError(err error) error {
	if err == nil {
		return fmt.Errorf("no error")
	}
	return err
}

func TestMailboxOf(t *testing.T) {
	t.Parallel()
	for email, want := range map[string]string{
		"ann@example.org":         "ann@example.org",
		"Ann+News@Example.org":    "ann@example.org",
		"ann+a+b@example.org":     "ann@example.org",
		"+ann@example.org":        "+ann@example.org",
		"ann+1@straße.example":    "ann@xn--strae-oqa.example",
		`"quoted+@+"@example.org`: `"quoted@example.org`,
	} {
		if got := domain.MailboxOf(email); got != want {
			t.Errorf("MailboxOf(%q) = %q, want %q", email, got, want)
		}
	}
}
