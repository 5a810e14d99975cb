package codec

import (
	"testing"
	"time"

	"hubcloud/domain"
)

func TestTime(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"2026-01-02T03:04:05.123456Z":      "2026-01-02T03:04:05.123456Z",
		"2026-01-02T03:04:05Z":             "2026-01-02T03:04:05.000000Z",
		"2026-01-02t03:04:05.1z":           "2026-01-02T03:04:05.100000Z",
		"2026-01-02T03:04:05.1234569Z":     "2026-01-02T03:04:05.123456Z",
		"2026-01-02T03:04:05.000-00:00":    "2026-01-02T03:04:05.000000Z",
		"2026-01-01T00:30:00.5+01:30":      "2025-12-31T23:00:00.500000Z",
		"2024-02-29T23:00:00-23:59":        "2024-03-01T22:59:00.000000Z",
		"2016-12-31T23:59:60Z":             "2016-12-31T23:59:59.999999Z",
		"2017-01-01T08:59:60.25+09:00":     "2016-12-31T23:59:59.999999Z",
		"0000-01-01T00:00:00Z":             "0000-01-01T00:00:00.000000Z",
		"0000-01-01T00:00:00+00:01":        "",
		"9999-12-31T23:59:59-00:01":        "",
		"2016-12-31T12:00:60Z":             "",
		"2026-02-29T00:00:00Z":             "",
		"2026-04-31T00:00:00Z":             "",
		"2026-00-01T00:00:00Z":             "",
		"2026-01-00T00:00:00Z":             "",
		"2026-01-02T24:00:00Z":             "",
		"2026-01-02T03:60:00Z":             "",
		"2026-01-02T03:04:61Z":             "",
		"2026-01-02T03:04:05":              "",
		"2026-01-02T03:04:05.Z":            "",
		"2026-01-02T03:04:05,5Z":           "",
		"2026-01-02T03:04:05+0100":         "",
		"2026-01-02T03:04:05+24:00":        "",
		"2026-01-02T03:04:05+01:60":        "",
		"2026-01-02T03:04:05Zx":            "",
		"2026-01-02 03:04:05Z":             "",
		"2026-1-02T03:04:05Z0000":          "",
		"+026-01-02T03:04:05Z":             "",
		"":                                 "",
		"2026-01-02T03:04:05.123456789123": "",
	} {
		out, ok := appendTime(nil, []byte(in))
		if ok != (want != "") || ok && string(out) != want {
			t.Errorf("appendTime(%q): got %q, %v, want %q", in, out, ok, want)
		}
	}
}

// FuzzTime compares appendTime with package time: a text that both accept has the same value.
func FuzzTime(f *testing.F) {
	f.Add("2026-01-02T03:04:05.123456Z")
	f.Add("2026-01-02T03:04:05+23:59")
	f.Add("2016-12-31T23:59:60Z")
	f.Fuzz(func(t *testing.T, in string) {
		out, ok := appendTime(nil, []byte(in))
		if !ok {
			return
		}
		got, err := time.Parse(domain.TimeLayout, string(out))
		if err != nil {
			t.Fatalf("appendTime(%q): got %q: %v", in, out, err)
		}
		if want, err := time.Parse(time.RFC3339Nano, in); err == nil && !got.Equal(want.Truncate(time.Microsecond)) {
			t.Fatalf("appendTime(%q): got %v, want %v", in, got, want)
		}
	})
}
