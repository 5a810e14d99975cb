package domain_test

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hubcloud/domain"
)

func TestCleanName(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", domain.MaxNameLength)
	for given, want := range map[string]string{
		"Hall":                   "Hall",
		" \t Hall 2\u00a0\n":     "Hall 2",
		long:                     long,
		"  " + long + "  ":       long,
		"Kärntner Straße 🏠":      "Kärntner Straße 🏠",
		"<script>alert</script>": "<script>alert</script>",
		// What copying leaves around a name, and what belongs into one.
		"\ufeffHall\u200b": "Hall", "דלת \u200f(א)": "דלת \u200f(א)", "👩\u200d🚒": "👩\u200d🚒",
	} {
		if got, err := domain.CleanName("name", given); err != nil || got != want {
			t.Errorf("CleanName(%q): got %q, %v, want %q", given, got, err, want)
		}
	}
	for _, bad := range []string{
		"", "   ", long + "é", "a\x00b", "a\nb", "a\u0085b", "a\x7fb", "\xff", "\u200b",
		"\u202e \u2066",
		// Regression: names that show nothing, and names that reverse the line that they stand in.
		"\u3164", "\u2800 \u2800", "\u115f", "\u034f", "\ufe0f", "Hall \u202elatot", "Hall\u2067",
	} {
		_, err := domain.CleanName("room", bad)
		if domain.CodeOf(err) != domain.CodeInvalidRequest || !strings.Contains(err.Error(), "room: ") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if got, err := domain.CleanLabel("label", "  "); err != nil || got != "" {
		t.Errorf("CleanLabel of spaces: got %q, %v, want an empty label", got, err)
	}
	// Regression: the message said that a label needs at least one character.
	_, err := domain.CleanLabel("label", long+"x")
	if want := domain.Errorf(
		domain.CodeInvalidRequest, "label: must be at most 200 characters, not 201",
	); !errors.Is(err, want) {
		t.Errorf("CleanLabel of 201 characters: got %v, want %v", err, want)
	}
}

func TestCleanEmail(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"Ann@Example.org":        "Ann@Example.org",
		" ann+hubs@example.org ": "ann+hubs@example.org",
		"o'neil@example.co.uk":   "o'neil@example.co.uk",
		"jose\u0301@example.org": "jos\u00e9@example.org",
		// The domain that mail goes to.
		"ann@stra\u1e9ee.example": "ann@strasse.example",
	} {
		if got, err := domain.CleanEmail("owner_email", given); err != nil || got != want {
			t.Errorf("CleanEmail(%q): got %q, %v, want %q", given, got, err, want)
		}
	}
	for _, bad := range []string{
		"", "ann", "ann@", "@example.org", "Ann <ann@example.org>", "<ann@example.org>",
		"a@example.org, b@example.org",
		"ann@example.org\r\nBcc: x@example.org", "a b@example.org",
		strings.Repeat("a", 250) + "@example.org", "\xff@example.org",
		"ann@a_b.example", "ann@-a.example", "ann@[192.0.2.1]", "ann@xn--a.example",
		"ann@example\u3002", "ann@a\u3002\u3002b", "ann@a\u200bb\u2024.example",
		"ann@" + strings.Repeat("a", 64) + ".example", "ann@\u202eexample.org",
		"ann@\u05d0a.example", "ann@xn--strae-oqa\u00df.example",
	} {
		_, err := domain.CleanEmail("owner_email", bad)
		if domain.CodeOf(err) != domain.CodeInvalidRequest || !strings.Contains(err.Error(), "owner_email: ") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	// Addresses with invisible characters were accepted, and equal to no address that their owner
	// types.
	for _, r := range "\ufeff\u200b\u2060\u202e\u00ad\u034f\u115f\u3164\u2800" {
		for _, place := range []string{"ann%c@example.org", "ann@exam%cple.org", "%ca@example.org"} {
			given := fmt.Sprintf(place, r)
			_, err := domain.CleanEmail("email", given)
			if domain.CodeOf(err) != domain.CodeInvalidRequest ||
				!strings.Contains(err.Error(), "invisible") {
				t.Errorf("CleanEmail(%q): got %v, want one on invisible characters", given, err)
			}
		}
	}
}

func TestPastedEmail(t *testing.T) {
	t.Parallel()
	for pasted, want := range map[string]string{
		"Ann <ann@example.org>": "ann@example.org", ` "Smith, Ann" <ann@example.org> `: "ann@example.org",
		"<ann@a>, <ann@b>": "<ann@a>, <ann@b>", "Ann <>": "Ann <>", " ann@example.org": "ann@example.org",
		"Ann <ann@example.org": "Ann <ann@example.org",
	} {
		if got := domain.PastedEmail(pasted); got != want {
			t.Errorf("PastedEmail(%q): got %q, want %q", pasted, got, want)
		}
	}
}

func TestNormalizeEmail(t *testing.T) {
	t.Parallel()
	for _, same := range [][2]string{
		{" Ann@Example.ORG ", "ann@example.org"},
		{"JOS\u00c9@example.org", "jos\u00e9@example.org"},
		{"JOSE\u0301@example.org", "jos\u00e9@example.org"}, // written with an accent of its own
		// the \u00c5ngstr\u00f6m sign equals the letter
		{"\u212bsa@example.org", "\u00e5sa@example.org"},
		// A domain in any of its spellings.
		{"ann@stra\u1e9ee.example", "ann@STRASSE.example"},
		{"ann@stra\u00dfe.example", "Ann@XN--STRAE-OQA.Example"},
		{"ann@stra\u00dfe.example", "ann@stra\u00dfe\u3002example"},
		{"ann@b\u00fccher.example", "ann@bu\u0308cher.example"},
		{"ann@B\u00dcCHER.EXAMPLE", "ann@xn--bcher-kva.example"},
		{"ann@b\u00fccher.example", "ann@\uff42\u00fccher.example"},
	} {
		for _, spelling := range same {
			if _, err := domain.CleanEmail("email", spelling); err != nil {
				t.Errorf("CleanEmail(%q): %v", spelling, err)
			}
		}
		if a, b := domain.NormalizeEmail(same[0]), domain.NormalizeEmail(same[1]); a != b {
			t.Errorf(
				"NormalizeEmail: got %q for %q and %q for %q, want equal forms", a, same[0], b,
				same[1],
			)
		}
	}
	// Different mailboxes must not become one account.
	for _, different := range [][2]string{
		{"\u0130smail@example.org", "ismail@example.org"},
		{"\u0131smail@example.org", "ismail@example.org"},
		{"stra\u00dfe@example.org", "strasse@example.org"},
		{"\uff41nn@example.org", "ann@example.org"},
		{"\u0430nn@example.org", "ann@example.org"}, // Cyrillic
		{"ann+a@example.org", "ann@example.org"},
		{"ann@stra\u1e9ee.example", "ann@stra\u00dfe.example"},
	} {
		a, b := domain.NormalizeEmail(different[0]), domain.NormalizeEmail(different[1])
		if a == b {
			t.Errorf("NormalizeEmail: got %q for both %q and %q", a, different[0], different[1])
		}
	}
	// The Kelvin sign compares as a k, so the stored address must have the k: otherwise mail would
	// go to another mailbox.
	if clean, err := domain.CleanEmail("email", "\u212aate@example.org"); err != nil || clean != "Kate@example.org" {
		t.Errorf("CleanEmail: got %q, %v, want Kate@example.org", clean, err)
	}
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "address")
		if once := domain.NormalizeEmail(s); domain.NormalizeEmail(once) != once {
			t.Fatalf(
				"NormalizeEmail(%q): got %q, and then %q", s, once, domain.NormalizeEmail(once),
			)
		}
	})
}

// uuidV7 matches the text of RFC 9562 for version 7 and its variant.
var uuidV7 = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

func TestUUIDv7(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		at := time.UnixMilli(rapid.Int64Range(0, 1<<48-1).Draw(t, "time"))
		entropy := [10]byte(rapid.SliceOfN(rapid.Byte(), 10, 10).Draw(t, "entropy"))
		s := domain.NewUUIDv7(at, entropy)
		if !uuidV7.MatchString(s) {
			t.Fatalf("%s: want a UUID of version 7", s)
		}
		ms, err := strconv.ParseInt(s[:8]+s[9:13], 16, 64)
		if err != nil || ms != at.UnixMilli() {
			t.Fatalf("%s: got time %d, %v, want %d", s, ms, err, at.UnixMilli())
		}
		if later := domain.NewUUIDv7(at.Add(time.Millisecond), [10]byte{}); at.UnixMilli() < 1<<48-1 && later <= s {
			t.Fatalf("got %s for a later time than %s, want it to sort after", later, s)
		}
		if !domain.IsUUID(s) {
			t.Fatalf("IsUUID(%s): got false, want true", s)
		}
	})
}

// IDs that pass IsUUID become part of a subject.
func TestIsUUIDRejects(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{
		"", "x", strings.ToUpper(site1), site1[:35], site1 + "0",
		strings.ReplaceAll(site1, "-", "."), "{" + site1[2:] + "}", strings.Repeat("*", 36),
	} {
		if bad != site1 && domain.IsUUID(bad) {
			t.Errorf("IsUUID(%q): got true, want false", bad)
		}
	}
}

func TestSerialAndHubID(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]domain.HubID{
		"HUB-7K2M-Q4XD-93TA": hub,
		// As copied: a typographic dash, a space or a line break was not read.
		"HUB\u20117K2M\u2013Q4XD\u221293TA": hub, " HUB 7K2M Q4XD 93TA ": hub,
		"HUB-7K2M-\r\nQ4XD-93TA\n": hub, "\ufeffHUB-7K2M\u200b-Q4XD-93TA": hub,
		"hub7k2mq4xd93ta":             hub,
		"hUb-7k2M-q4xD93ta":           hub,
		"AB-0000-0000-0000":           "ab-0000-0000-0000",
		"A23456789012-AAAA-BBBB-CCCC": "a23456789012-aaaa-bbbb-cccc",
	} {
		if got, ok := domain.ParseSerial(given); !ok || got != want {
			t.Errorf("ParseSerial(%q): got %q, %t, want %q", given, got, ok, want)
		}
	}
	for _, bad := range []string{
		"", "-", "7HUB-7K2M-Q4XD-93TA", "H-7K2M-Q4XD-93TA", "HUB-7K2M-Q4XD", "HUB-7K2M-Q4XD-93T.",
		"hub_7k2mq4xd93ta", "HUB_7K2M_Q4XD_93TA", "a234567890123aaaabbbbcccc",
	} {
		if got, ok := domain.ParseSerial(bad); ok {
			t.Errorf("ParseSerial(%q): got %q, want false", bad, got)
		}
	}
	if hub.Serial() != "HUB-7K2M-Q4XD-93TA" {
		t.Errorf("Serial: got %s", hub.Serial())
	}
	if _, ok := domain.ParseHubID("HUB-7k2m-q4xd-93ta"); ok {
		t.Error("ParseHubID in upper case: got true, want false")
	}
}

// Hub ids become tokens of subjects and parts of stream names, so they must not contain separators
// or wildcards.
func FuzzParseSerial(f *testing.F) {
	for _, s := range []string{
		"HUB-7K2M-Q4XD-93TA", "hub7k2mq4xd93ta", "hub.*.>", "İ23456789012345", "-----",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, ok := domain.ParseSerial(s)
		if !ok {
			return
		}
		if again, ok := domain.ParseHubID(string(id)); !ok || again != id ||
			strings.ContainsAny(string(id), ".*> \t/+#") {
			t.Fatalf("ParseSerial(%q): got %q", s, id)
		}
		if back, ok := domain.ParseSerial(id.Serial()); !ok || back != id {
			t.Fatalf("ParseSerial(%q): got %q, and %q from its serial", s, id, back)
		}
	})
}
