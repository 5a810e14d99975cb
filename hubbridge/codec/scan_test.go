package codec

import (
	"bytes"
	"encoding/json"
	"reflect"
	"regexp"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"hubcloud/domain"
)

// checkCompact checks the compact form of a JSON text: the one of encoding/json, or, if the text
// has half of a surrogate pair, another text of the same value.
func checkCompact(t *testing.T, got, raw []byte) {
	t.Helper()
	var want bytes.Buffer
	if err := json.Compact(&want, raw); err != nil {
		t.Fatalf("compact %q: %v", raw, err)
	}
	if strictlyValid(raw) && !bytes.Contains(raw, []byte(`\u0000`)) && string(got) != want.String() {
		t.Fatalf("compact %q, want %q", got, want.String())
	}
	// encoding/json replaces half of a surrogate pair, too, but not U+0000.
	var gotValue, wantValue any
	decode := func(text []byte, into *any) error {
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		return d.Decode(into)
	}
	for nul.Match(raw) { // a match ends the next one's beginning
		raw = nul.ReplaceAll(raw, []byte(`$1\ufffd`))
	}
	if decode(got, &gotValue) != nil || decode(raw, &wantValue) != nil || !reflect.DeepEqual(gotValue, wantValue) {
		t.Fatalf("compact %q of %q", got, raw)
	}
}

// nul matches an escaped U+0000 with the escaped backslashes before it.
var nul = regexp.MustCompile(`((?:^|[^\\])(?:\\\\)*)\\u0000`)

// strictlyValid reports whether a reader that rejects half surrogate pairs reads the text.
func strictlyValid(text []byte) bool {
	return jsontext.Value(text).IsValid(jsontext.AllowDuplicateNames(true))
}

// tooDeep reports whether text is nested deeper than encoding/json reads.
func tooDeep(text []byte) bool { return domain.JSONDepth(text) > 10_000 }

// FuzzScanner compares the scanner with encoding/json: both accept the same texts, and return the
// same compact forms and strings.
func FuzzScanner(f *testing.F) {
	for _, seed := range []string{
		`{"a":[1,-0.5e+10,true,false,null,"x\u00fc\ud83d\ude00\ud800"],"b":{}}`, `[]`, ` "a" `,
		`01`, `1.`, `-`, `{"a"}`, `[1,]`, `"` + "\n" + `"`, `tru`,
		`"\ud83d\\\uDE00"`, `["\uD83D","\ud83d\u0041\ude00"]`, `[1e400,-1E-400]`, `"\u0000\u0000\\u0000"`, `{"a":1}}`, `1e`, `"\x"`, `"\u12"`, "\"\xff\"",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		s := scanner{text: raw}
		s.skipSpace()
		extent, ok := s.skipValue()
		s.skipSpace()
		ok = ok && s.pos == len(raw)
		if tooDeep(raw) {
			return
		}
		if ok != json.Valid(raw) {
			t.Fatalf("value: got %v for %q", ok, raw)
		}
		if !ok {
			return
		}
		text := extent.of(raw)
		got := appendCompact(nil, text)
		checkCompact(t, got, raw)
		if utf8.Valid(raw) && !strictlyValid(got) {
			t.Fatalf("compact %q, which strict readers reject", got)
		}
		var want string
		if text[0] == '"' && json.Unmarshal(text, &want) == nil {
			// encoding/json also replaces invalid UTF-8, which this package rejects elsewhere.
			if got := string(bytes.ToValidUTF8(unescape(text), []byte("\ufffd"))); got != want &&
				bytes.Equal(raw, bytes.ToValidUTF8(raw, nil)) {
				t.Fatalf("unescaped %q, want %q", got, want)
			}
		}
	})
}
