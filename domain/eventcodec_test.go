package domain

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// goldenEvents returns every event type in the form in which it was once stored.
func goldenEvents(tb testing.TB) [][]byte {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "events", "*.json"))
	if err != nil || len(files) == 0 {
		tb.Fatalf("no golden files: %v", err)
	}
	var all [][]byte
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		all = append(all, []byte(strings.TrimSpace(string(raw))))
	}
	return all
}

// decodeCanonical must read what EncodeEvent writes as encoding/json does, and reject all other
// texts.
func TestDecodeCanonical(t *testing.T) {
	t.Parallel()
	for _, raw := range goldenEvents(t) {
		e, ok := decodeCanonical(raw)
		var same Event
		if err := json.Unmarshal(raw, &same); err != nil || !ok || !reflect.DeepEqual(e, same) {
			t.Errorf("decodeCanonical(%s): got %+v, %t, want %+v, true (%v)", raw, e, ok, same, err)
		}
	}
	const good = `{"id":"i","type":"t","v":1,"at":"2026-01-02T03:04:05Z",` +
		`"actor":{"kind":"key","id":"k"},"request_id":"r","address":"::1","data":{"a":1}}`
	if e, ok := decodeCanonical([]byte(good)); !ok || e.ID != "i" || e.Actor.ID != "k" || e.RequestID != "r" ||
		e.Address != "::1" || string(e.Data) != `{"a":1}` {
		t.Fatalf("%+v, %t", e, ok)
	}
	for _, change := range [][2]string{
		{`"id":"i"`, `"id":"\u0069"`}, {`"id":"i"`, `"id":"é"`}, {`"id":"i"`, `"id": "i"`},
		{`"id":"i"`, `"ID":"i"`}, {`"v":1`, `"v":01`}, {`"v":1`, `"v":1.0`},
		{`"v":1`, `"v":-1`}, {`"v":1`, `"v":12345678901`}, {`05Z`, `05`}, {`05Z`, `61Z`},
		{`"data":{"a":1}`, `"data":[]`}, {`"data":{"a":1}`, `"data":null`},
		{`"data":{"a":1}}`, `"data":{"a":1}`}, {`,"data"`, `,"more":1,"data"`},
		{`{"a":1}}`, `{"a":1}}` + "\n"}, {`"type":"t"`, "\"type\":\"\x01\""},
	} {
		if e, ok := decodeCanonical([]byte(strings.Replace(good, change[0], change[1], 1))); ok {
			t.Errorf("with %s for %s: got %+v, want false", change[1], change[0], e)
		}
	}
	for cut := range good {
		if e, ok := decodeCanonical([]byte(good[:cut])); ok {
			t.Errorf("decodeCanonical(%s): got %+v, want false", good[:cut], e)
		}
	}
}

// An event that decodeCanonical accepts is the one that encoding/json reads.
func FuzzDecodeCanonical(f *testing.F) {
	for _, raw := range goldenEvents(f) {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		e, ok := decodeCanonical(raw)
		if !ok || !json.Valid(e.Data) { // Event.Fact rejects invalid data
			return
		}
		var same Event
		if err := json.Unmarshal(raw, &same); err != nil || !reflect.DeepEqual(e, same) {
			t.Errorf("decodeCanonical(%q): got %+v, want %+v (%v)", raw, e, same, err)
		}
	})
}
