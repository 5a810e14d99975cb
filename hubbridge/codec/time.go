package codec

import (
	"time"

	"hubcloud/domain"
)

// appendTime appends an RFC 3339 timestamp in domain.TimeLayout. It takes what section 5.6 of the
// RFC defines, `t` and `z` in either case; Go's own parser is laxer about some of it and knows no
// leap seconds. The year must be 0 to 9999 also in UTC.
func appendTime(out, text []byte) ([]byte, bool) {
	if len(text) < len("2006-01-02T15:04:05Z") ||
		text[4] != '-' || text[7] != '-' || text[10]|0x20 != 't' || text[13] != ':' || text[16] != ':' {
		return out, false
	}
	year, ok1 := decimal(text[0:4])
	month, ok2 := decimal(text[5:7])
	day, ok3 := decimal(text[8:10])
	hour, ok4 := decimal(text[11:13])
	minute, ok5 := decimal(text[14:16])
	second, ok6 := decimal(text[17:19])
	if !(ok1 && ok2 && ok3 && ok4 && ok5 && ok6) || month < 1 || month > 12 || day < 1 || day > daysIn(month, year) ||
		hour > 23 ||
		minute > 59 ||
		second > 60 {
		return out, false
	}
	micros, rest, ok := fraction(text[19:])
	if !ok {
		return out, false
	}
	offset, ok := zone(rest)
	if !ok {
		return out, false
	}
	if second < 60 && offset == 0 {
		out = append(out, text[:10]...)
		out = append(out, 'T')
		out = append(out, text[11:19]...)
		return append(appendMicros(append(out, '.'), micros), 'Z'), true
	}
	leap := second == 60
	if leap {
		second, micros = 59, 999_999
	}
	t := time.Date(year, time.Month(month), day, hour, minute, second, micros*1000, time.UTC).
		Add(-time.Duration(offset) * time.Minute)
	if t.Year() < 0 || t.Year() > 9999 || leap && (t.Hour() != 23 || t.Minute() != 59) {
		return out, false
	}
	return t.AppendFormat(out, domain.TimeLayout), true
}

// fraction reads the digits after the point, if there is one, down to microseconds.
func fraction(text []byte) (micros int, rest []byte, ok bool) {
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

// zone reads the offset from UTC, in minutes.
func zone(text []byte) (minutes int, ok bool) {
	if len(text) == 1 && text[0]|0x20 == 'z' {
		return 0, true
	}
	if len(text) != 6 || text[0] != '+' && text[0] != '-' || text[3] != ':' {
		return 0, false
	}
	h, ok1 := decimal(text[1:3])
	m, ok2 := decimal(text[4:6])
	if !ok1 || !ok2 || h > 23 || m > 59 {
		return 0, false
	}
	if minutes = h*60 + m; text[0] == '-' {
		minutes = -minutes
	}
	return minutes, true
}

// decimal reads digits, and nothing but digits.
func decimal(text []byte) (n int, ok bool) {
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
