package domain

import (
	"strconv"
	"time"
)

// LargestUnit returns a duration as a number of the largest unit that divides it: "day" (for more
// than one day), "hour", "minute" or "second". ok is false for a duration with a part of a second.
func LargestUnit(d time.Duration) (n int, unit string, ok bool) {
	const day = 24 * time.Hour
	switch {
	case d%time.Second != 0:
		return 0, "", false
	case d > day && d%day == 0:
		return int(d / day), "day", true
	case d >= time.Hour && d%time.Hour == 0:
		return int(d / time.Hour), "hour", true
	case d >= time.Minute && d%time.Minute == 0:
		return int(d / time.Minute), "minute", true
	}
	return int(d / time.Second), "second", true
}

// FormatDuration returns a duration as people write it, in the unit of LargestUnit: "24 hours",
// "90 seconds". A duration with a part of a second is written as time.Duration does: "1.5s".
func FormatDuration(d time.Duration) string {
	n, unit, ok := LargestUnit(d)
	if !ok {
		return d.String()
	}
	if n != 1 {
		unit += "s"
	}
	return strconv.Itoa(n) + " " + unit
}
