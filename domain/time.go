package domain

import "time"

// TimeLayout is how the service writes every timestamp: ISO 8601, UTC, microseconds.
const TimeLayout = "2006-01-02T15:04:05.000000Z"

// FormatTime writes t in TimeLayout.
func FormatTime(t time.Time) string { return t.UTC().Format(TimeLayout) }
