package codec

import (
	"bytes"
	"encoding/json"
	"testing"
)

func compacted(t *testing.T, raw []byte) string {
	t.Helper()
	var out bytes.Buffer
	if err := json.Compact(&out, raw); err != nil {
		t.Fatalf("compact %q: %v", raw, err)
	}
	return out.String()
}

// FuzzScanner compares the scanner with encoding/json: both accept the same texts, and return the
// same compact forms and strings.
func FuzzScanner(f *testing.F) {
	for _, seed := range []string{
		`{"a":[1,-0.5e+10,true,false,null,"x\u00fc\ud83d\ude00\ud800"],"b":{}}`, `[]`, ` "a" `,
		`01`, `1.`, `-`, `{"a"}`, `[1,]`, `"` + "\n" + `"`, `tru`,
		`{"a":1}}`, `1e`, `"\x"`, `"\u12"`, "\"\xff\"",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		s := scanner{text: raw}
		s.skipSpace()
		extent, ok := s.skipValue()
		s.skipSpace()
		ok = ok && s.pos == len(raw)
		if ok != json.Valid(raw) {
			t.Fatalf("value: got %v for %q", ok, raw)
		}
		if !ok {
			return
		}
		text := extent.of(raw)
		if got, want := string(appendCompact(nil, text)), compacted(t, raw); got != want {
			t.Fatalf("compact %q, want %q", got, want)
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
