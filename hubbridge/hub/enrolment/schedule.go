package enrolment

import "time"

// Schedule decides when a hub that cannot connect enrols again: at once after a start, otherwise
// once per Interval. The zero state is that of a hub that has just started.
type Schedule struct {
	// Interval is the least time between enrolments after the first.
	Interval time.Duration

	next     time.Time // when the hub may enrol again; zero: not decided since the last connection
	accepted bool      // the broker has accepted the hub since the start
	failures int       // failed connects in a row that may be rejections
}

// Restarted notes a restart of the hub.
func (s *Schedule) Restarted() { *s = Schedule{Interval: s.Interval} }

// Connected notes that the broker accepted the hub.
func (s *Schedule) Connected() { s.accepted, s.next, s.failures = true, time.Time{}, 0 }

// Enrolled notes an attempt to enrol, successful or not.
func (s *Schedule) Enrolled(now time.Time) { s.next, s.failures = now.Add(s.Interval), 0 }

// Rejected notes that the broker rejected the hub and reports whether to enrol now. certain is
// false for a connection that was merely closed. That may be a delayed takeover or a broker that
// shuts down, so only the second one in a row counts.
func (s *Schedule) Rejected(certain bool, now time.Time) bool {
	if s.failures++; !certain && s.failures < 2 {
		return false
	}
	if s.accepted && s.next.IsZero() {
		s.next = now.Add(s.Interval)
	}
	return !now.Before(s.next)
}

// Unreachable notes that no broker answers at the address from the last enrolment and reports
// whether to enrol now. Enrolment returns the present address, but only a hub that has just
// started asks for it: a broker that goes away later is expected back.
func (s *Schedule) Unreachable() bool {
	s.failures++
	return !s.accepted && s.next.IsZero() && s.failures >= 3
}
