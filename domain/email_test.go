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
		// Ideographs and what no version of Unicode has assigned have one writing.
		// Of the syllables of Hangul, which are composed by a rule, some will do.
		if !utf8.ValidRune(r) || unicode.Is(unicode.Unified_Ideograph, r) ||
			r >= 0xac00 && r <= 0xd7a3 && r%100 > 0 ||
			!unicode.IsGraphic(r) && !unicode.In(r, unicode.Z, unicode.Cc, unicode.Cf) {
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
