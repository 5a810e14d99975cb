package codec

import (
	"time"

	"hubcloud/domain"
)

// appendTime appends an RFC 3339 timestamp in domain.TimeLayout; ok is false if text is none. It
// accepts what section 5.6 of the RFC defines, with t and z in either case. Package time is less
// strict and knows no leap seconds. The year must be 0 to 9999 also in UTC.
func appendTime(out, text []byte) (appended []byte, ok bool) {
	c, ok := parseClock(text)
	if !ok {
		return out, false
	}
	micros, rest, ok := parseFraction(text[clockLength:])
	if !ok {
		return out, false
	}
	offset, ok := parseZone(rest)
	if !ok {
		return out, false
	}
	if c.second < 60 && offset == 0 {
		out = append(out, text[:10]...)
		out = append(out, 'T')
		out = append(out, text[11:clockLength]...)
		return append(appendMicros(append(out, '.'), micros), 'Z'), true
	}
	leap := c.second == 60
	if leap {
		c.second, micros = 59, 999_999
	}
	t := time.Date(
		c.year, time.Month(c.month), c.day, c.hour, c.minute, c.second, micros*1000, time.UTC,
	).Add(-time.Duration(offset) * time.Minute)
	if t.Year() < 0 || t.Year() > 9999 || leap && (t.Hour() != 23 || t.Minute() != 59) {
		return out, false
	}
	return t.AppendFormat(out, domain.TimeLayout), true
}

// clock is a date and a time of day.
type clock struct{ year, month, day, hour, minute, second int }

// clockLength is the length of a timestamp without fraction and offset.
const clockLength = len("2006-01-02T15:04:05")

// parseClock parses the first clockLength bytes of a timestamp. It accepts a leap second on any
// minute.
func parseClock(text []byte) (c clock, ok bool) {
	if len(text) <= clockLength || text[4] != '-' || text[7] != '-' || text[10]|0x20 != 't' ||
		text[13] != ':' || text[16] != ':' {
		return c, false
	}
	var ok1, ok2, ok3, ok4, ok5, ok6 bool
	c.year, ok1 = parseDigits(text[0:4])
	c.month, ok2 = parseDigits(text[5:7])
	c.day, ok3 = parseDigits(text[8:10])
	c.hour, ok4 = parseDigits(text[11:13])
	c.minute, ok5 = parseDigits(text[14:16])
	c.second, ok6 = parseDigits(text[17:19])
	if !(ok1 && ok2 && ok3 && ok4 && ok5 && ok6) {
		return c, false
	}
	return c, c.month >= 1 && c.month <= 12 && c.day >= 1 && c.day <= daysIn(c.month, c.year) &&
		c.hour <= 23 && c.minute <= 59 && c.second <= 60
}

// parseFraction parses the optional fraction of a second and returns the text after it.
func parseFraction(text []byte) (micros int, rest []byte, ok bool) {
	if len(text) == 0 || text[0] != '.' {
		return 0, text, true
	}
	i, weight := 1, 100_000
	for ; i < len(text) && text[i]-'0' <= 9; i++ {
		micros += int(text[i]-'0') * weight
		weight /= 10
	}
	return micros, text[i:], i > 1
}

// parseZone parses the offset from UTC.
func parseZone(text []byte) (minutes int, ok bool) {
	if len(text) == 1 && text[0]|0x20 == 'z' {
		return 0, true
	}
	if len(text) != 6 || text[0] != '+' && text[0] != '-' || text[3] != ':' {
		return 0, false
	}
	h, ok1 := parseDigits(text[1:3])
	m, ok2 := parseDigits(text[4:6])
	if !ok1 || !ok2 || h > 23 || m > 59 {
		return 0, false
	}
	if minutes = h*60 + m; text[0] == '-' {
		minutes = -minutes
	}
	return minutes, true
}

// parseDigits parses digits only.
func parseDigits(text []byte) (n int, ok bool) {
	for _, c := range text {
		if c-'0' > 9 {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}

func appendMicros(out []byte, micros int) []byte {
	for weight := 100_000; weight > 0; weight /= 10 {
		out = append(out, byte('0'+micros/weight%10))
	}
	return out
}

func daysIn(month, year int) int {
	switch month {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	}
	return 31
}
