package domain_test

import (
	"strings"
	"testing"

	"hubcloud/domain"
)

// TestPlainLine: a direction that a hub's text set and never ended reversed the rest of the line
// that the text stood in.
func TestPlainLine(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"Front door": "Front door", "דלת": "דלת", "👩\u200d🚒": "👩\u200d🚒",
		"a\u202ebc\u2067d\u202a":         "abcd",
		" \x1b[31mred\u009b1m\r\n\u2028": "[31mred 1m",
		"\xffa":                          "\ufffda",
	} {
		if got := domain.PlainLine(given); got != want {
			t.Errorf("PlainLine(%q): got %q, want %q", given, got, want)
		}
	}
	if got := domain.PlainPage([]byte("<p>a\u202eb\u2066c</p>\n")); string(got) != "<p>abc</p>\n" {
		t.Errorf("PlainPage: got %q", got)
	}
}

// TestInvisibleAddress: addresses with invisible characters were accepted, and equal to no address
// that their owner types.
func TestInvisibleAddress(t *testing.T) {
	t.Parallel()
	for _, r := range "\ufeff\u200b\u2060\u202e\u00ad\u034f\u115f\u3164\u2800" {
		for _, given := range []string{
			"ann" + string(r) + "@example.org", "ann@exam" + string(r) + "ple.org",
			string(r) + "ann@example.org", "ann@example.org" + string(r),
		} {
			_, err := domain.CleanEmail("email", given)
			if domain.CodeOf(err) != domain.CodeInvalidRequest || !strings.Contains(err.Error(), "invisible") {
				t.Errorf("CleanEmail(%q): got error %v, want one on invisible characters", given, err)
			}
		}
	}
}

// TestInvisibleReaderName: a reader's name that shows nothing was accepted.
func TestInvisibleReaderName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"\u3164", "\u2800", "   "} {
		if domain.CheckReaderName(name) == nil {
			t.Errorf("CheckReaderName(%q): no error", name)
		}
	}
}

// TestSerialAsCopied: a Serial with a typographic dash, a space or a line break was not read.
func TestSerialAsCopied(t *testing.T) {
	t.Parallel()
	for _, given := range []string{
		"HUB-7K2M-Q4XD-93TA", "hub7k2mq4xd93ta", "HUB\u20117K2M\u2013Q4XD\u221293TA",
		" HUB 7K2M Q4XD 93TA ", "HUB-7K2M-\r\nQ4XD-93TA\n", "\ufeffHUB-7K2M\u200b-Q4XD-93TA",
	} {
		if id, ok := domain.ParseSerial(given); !ok || id != "hub-7k2m-q4xd-93ta" {
			t.Errorf("ParseSerial(%q): got %q, %v", given, id, ok)
		}
	}
	if id, ok := domain.ParseSerial("HUB_7K2M_Q4XD_93TA"); ok {
		t.Errorf("ParseSerial with underscores: got %q", id)
	}
}
