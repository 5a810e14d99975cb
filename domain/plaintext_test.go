package domain_test

import (
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

// TestInvisibleReaderName: a reader's name that shows nothing was accepted.
func TestInvisibleReaderName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"\u3164", "\u2800", "   "} {
		if domain.CheckReaderName(name) == nil {
			t.Errorf("CheckReaderName(%q): no error", name)
		}
	}
}
