package domain

import "time"

// TimeLayout is how the service writes every timestamp: ISO 8601, UTC, microseconds.
const TimeLayout = "2006-01-02T15:04:05.000000Z"

// FormatTime writes t in TimeLayout.
func FormatTime(t time.Time) string {
	return string(AppendTime(make([]byte, 0, len(TimeLayout)), t))
}

// AppendTime appends t in TimeLayout. It is several times faster than time.AppendFormat, which
// parses the layout each time; lists contain many times.
func AppendTime(dst []byte, t time.Time) []byte {
	t = t.UTC()
	year, month, day := t.Date()
	if year < 0 || year > 9999 {
		return t.AppendFormat(dst, TimeLayout)
	}
	hour, minute, second := t.Clock()
	dst = append(appendDigits(dst, year, 4), '-')
	dst = append(appendDigits(dst, int(month), 2), '-')
	dst = append(appendDigits(dst, day, 2), 'T')
	dst = append(appendDigits(dst, hour, 2), ':')
	dst = append(appendDigits(dst, minute, 2), ':')
	dst = append(appendDigits(dst, second, 2), '.')
	return append(appendDigits(dst, t.Nanosecond()/1000, 6), 'Z')
}

// appendDigits appends n with that many digits.
func appendDigits(dst []byte, n, digits int) []byte {
	at := len(dst)
	for range digits {
		dst = append(dst, '0')
	}
	for i := at + digits - 1; n > 0; i-- {
		dst[i] = byte('0' + n%10)
		n /= 10
	}
	return dst
}
