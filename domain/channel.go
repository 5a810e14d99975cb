package domain

import "time"

// ChannelStatus compares what was asked of a channel with what its device reports.
type ChannelStatus string

// The states of the contract.
const (
	// ChannelUnknown: nothing was asked and nothing reported yet.
	ChannelUnknown ChannelStatus = "unknown"
	// ChannelSynchronized: the device reports what was asked, or nothing was asked.
	ChannelSynchronized ChannelStatus = "synchronized"
	// ChannelPending: a command is under way.
	ChannelPending ChannelStatus = "pending"
	// ChannelDiverged: the device has reported something other than what was asked.
	ChannelDiverged ChannelStatus = "diverged"
	// ChannelFailed: the command was rejected or abandoned.
	ChannelFailed ChannelStatus = "failed"
)

// ParseChannelStatus returns the status of that name; false if there is none.
func ParseChannelStatus(s string) (ChannelStatus, bool) {
	switch status := ChannelStatus(s); status {
	case ChannelUnknown, ChannelSynchronized, ChannelPending, ChannelDiverged, ChannelFailed:
		return status, true
	default:
		return "", false
	}
}

// ChannelState is the state of a channel at its hub: the reported value, the desired value, and
// their comparison. NewChannelState returns the first state; Commanded, Reported and Abandoned
// return the next. Virtual hubs keep it; the cloud keeps no state of devices and passes on what
// hubs answer (Channel).
//
// Values are compared with ==, unless the desired value implements Desired. Nil means no value.
type ChannelState struct {
	Value      any
	ObservedAt time.Time // zero: never
	Desired    any       // nil: nothing was ever asked
	DesiredAt  time.Time
	Status     ChannelStatus
}

// Desired is a desired value that is reached by more than its equal, such as a color of which only
// some components were given.
type Desired interface {
	// Matches reports whether a reported value is what was asked.
	Matches(reported any) bool
}

// NewChannelState returns the state of a channel that has reported value at now, or nothing yet if
// value is nil.
func NewChannelState(value any, now time.Time) ChannelState {
	s := ChannelState{Status: ChannelUnknown}
	if value != nil {
		s, _ = s.Reported(value, now)
	}
	return s
}

// Commanded returns the state after the hub accepted a command and passed it to the device.
func (s ChannelState) Commanded(value any, now time.Time) ChannelState {
	s.Desired, s.DesiredAt, s.Status = value, now, ChannelPending
	return s
}

// Reported returns the state after the device reported value, and whether the report is news: a
// first or different value, or the outcome of a command.
//
// A report of what was asked synchronizes every state. A different report makes a pending or
// synchronized channel diverge. A failed channel stays failed: an old value reported again says
// nothing about the abandoned command.
func (s ChannelState) Reported(value any, now time.Time) (next ChannelState, news bool) {
	news = s.ObservedAt.IsZero() || s.Value != value || s.Status == ChannelPending
	s.Value, s.ObservedAt = value, now
	switch {
	case s.Desired == nil || s.matches(value):
		s.Status = ChannelSynchronized
	case s.Status != ChannelFailed:
		s.Status = ChannelDiverged
	}
	return s, news
}

// Abandoned returns the state after the hub or its radio abandoned the pending command. Without a
// pending command it returns s.
func (s ChannelState) Abandoned() ChannelState {
	if s.Status == ChannelPending {
		s.Status = ChannelFailed
	}
	return s
}

func (s ChannelState) matches(value any) bool {
	if desired, ok := s.Desired.(Desired); ok {
		return desired.Matches(value)
	}
	return s.Desired == value
}
