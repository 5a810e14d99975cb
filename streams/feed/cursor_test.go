package feed

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"hubcloud/domain"
)

func TestCursorText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := cursor{
			seq: rapid.Uint64Range(0, 1<<48-1).Draw(t, "seq"),
			ms:  rapid.Int64Range(0, 1<<48-1).Draw(t, "ms"),
		}
		copy(c.epoch[:], rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "epoch"))
		got, err := parseCursor(c.String())
		if err != nil || got != c {
			t.Fatalf("parseCursor(%q) = %+v, %v; want %+v", c, got, err, c)
		}
		// A text with one character changed is not a cursor.
		i := rapid.IntRange(0, cursorText-1).Draw(t, "index")
		other := []byte(c.String())
		other[i] = rapid.SampledFrom([]byte("ABCabc019-_=+/. \n")).Draw(t, "character")
		if string(other) != c.String() {
			if _, err := parseCursor(string(other)); codeOf(err) != domain.CodeInvalidRequest {
				t.Fatalf("parseCursor(%q): %v, want invalid_request", other, err)
			}
		}
	})
}

func FuzzParseCursor(f *testing.F) {
	f.Add(cursor{seq: 7, ms: 1}.String())
	f.Add("")
	f.Add(strings.Repeat("A", cursorText))
	f.Add(strings.Repeat("_", 100))
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parseCursor(text)
		switch {
		case err != nil && domain.CodeOf(err) != domain.CodeInvalidRequest:
			t.Fatalf("parseCursor(%q): %v, want invalid_request", text, err)
		case err == nil && c.String() != text:
			t.Fatalf("parseCursor(%q) = %+v, which is %q as text", text, c, c)
		}
	})
}
