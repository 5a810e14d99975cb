package portal

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestCSVForSpreadsheets: Excel took the file for another encoding, and a program that splits at
// semicolons or tabs ran a formula from the middle of a device's name.
func TestCSVForSpreadsheets(t *testing.T) {
	t.Parallel()
	answer := httptest.NewRecorder()
	out := NewCSV(answer)
	for given, want := range map[string]string{
		"Front door": "Front door", `say "hi"; bye`: `say ""hi""; bye`, `{"value":-1}`: `{""value"":-1}`,
		"": "", "Müller, Hans": "Müller, Hans",
		"=1+1": "'=1+1", "\t=1": "'=1", " @x": "'@x", "\ufeff-1": "'\ufeff-1", "\u202e=1": "'=1",
		"lamp;=cmd|' /C calc'!A0": "lamp;'=cmd|' /C calc'!A0", "lamp\t=1": "lamp =1",
		`a; "+1`: `a;' ""+1`, "two\r\nlines": "two  lines",
	} {
		answer.Body.Reset()
		if err := out.Row(given, "x"); err != nil || out.Flush() != nil {
			t.Fatal(err)
		}
		got := strings.TrimPrefix(answer.Body.String(), "\ufeff")
		if want = `"` + want + `","x"` + "\r\n"; got != want {
			t.Errorf("row of %q: got %q, want %q", given, got, want)
		}
	}
	first := httptest.NewRecorder()
	if err := NewCSV(first).Flush(); err != nil || first.Body.String() != "\ufeff" {
		t.Errorf("beginning of a file: got %q, %v, want a byte order mark", first.Body, err)
	}
}

// TestTimesOfHTML: the machine-readable time of an event had six digits after the second, and HTML
// allows three.
func TestTimesOfHTML(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 123_456_000, time.UTC)
	if got := string(clock(at, at)); !strings.Contains(got, `datetime="2026-01-02T03:04:05.123Z"`) {
		t.Errorf("clock: got %s, want three digits", got)
	}
}
