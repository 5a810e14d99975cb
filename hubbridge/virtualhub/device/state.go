package device

import "time"

// Status is where a channel stands between what was asked of it and what it reports.
type Status string

// The states of a channel.
const (
	Unknown      Status = "unknown"      // nothing asked, nothing reported yet
	Synchronized Status = "synchronized" // it reports what was asked, or nothing was asked
	Pending      Status = "pending"      // a command is under way
	Diverged     Status = "diverged"     // it has since reported something other than what was asked
	Failed       Status = "failed"       // the command was abandoned
)

// State is what a channel reports and what was asked of it. The zero State is none: start from State{Status: Unknown}.
type State struct {
	Value      Value
	ObservedAt time.Time // zero: never
	Desired    Value     // nil: nothing was ever asked
	DesiredAt  time.Time
	Status     Status
}

// Commanded is the state after the hub accepted a command and handed it to the device. The value stays as it was.
func (s State) Commanded(v Value, now time.Time) State {
	s.Desired, s.DesiredAt, s.Status = v, now, Pending
	return s
}

// Reported is the state after the device reported v, and whether that is news: a first or another value, or the outcome of a command.
//
// A report that equals what was asked synchronizes from every state. One that differs makes a pending or synchronized channel
// diverge; a failed one stays failed, since an old value that is reported again says nothing about why the command was abandoned.
func (s State) Reported(v Value, now time.Time) (next State, news bool) {
	news = s.ObservedAt.IsZero() || s.Value != v || s.Status == Pending
	s.Value, s.ObservedAt = v, now
	switch {
	case s.Desired == nil || matches(s.Desired, v):
		s.Status = Synchronized
	case s.Status != Failed:
		s.Status = Diverged
	}
	return s, news
}

// GivenUp is the state after the hub or its radio abandoned the command under way; without one nothing changes.
func (s State) GivenUp() State {
	if s.Status == Pending {
		s.Status = Failed
	}
	return s
}
