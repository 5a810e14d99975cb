package domain

import "time"

// ChannelStatus is where a channel stands between what was asked of it and what it reports.
type ChannelStatus string

// The states of the contract.
const (
	ChannelUnknown ChannelStatus = "unknown" // nothing asked, nothing reported yet
	// it reports what was asked, or nothing was asked
	ChannelSynchronized ChannelStatus = "synchronized"
	ChannelPending      ChannelStatus = "pending" // a command is under way
	// it has since reported something other than what was asked
	ChannelDiverged ChannelStatus = "diverged"
	ChannelFailed   ChannelStatus = "failed" // the command was refused or abandoned
)

// ParseChannelStatus takes a status by its name.
func ParseChannelStatus(s string) (ChannelStatus, bool) {
	switch status := ChannelStatus(s); status {
	case ChannelUnknown, ChannelSynchronized, ChannelPending, ChannelDiverged, ChannelFailed:
		return status, true
	default:
		return "", false
	}
}

// ChannelState is the state machine of a channel: what the device reports, what was asked of it,
// and where it stands between the two. It changes by Commanded, Reported and GivenUp alone. A state
// begins with NewChannelState.
//
// Values are compared with ==; nil is none. A desired value that can be fulfilled by others than
// its equal is a Wish.
type ChannelState struct {
	Value      any
	ObservedAt time.Time // zero: never
	Desired    any       // nil: nothing was ever asked
	DesiredAt  time.Time
	Status     ChannelStatus
}

// Wish is a desired value that says itself which reported values are what was asked, such as a
// color of which only some components were named.
type Wish interface {
	FulfilledBy(reported any) bool
}

// NewChannelState is the state of a channel of which nothing is known, or, unless value is nil, of
// one that has reported it at now.
func NewChannelState(value any, now time.Time) ChannelState {
	s := ChannelState{Status: ChannelUnknown}
	if value != nil {
		s, _ = s.Reported(value, now)
	}
	return s
}

// Commanded is the state after a hub accepted a command and handed it to the device. What was
// reported stays as it was.
func (s ChannelState) Commanded(value any, now time.Time) ChannelState {
	s.Desired, s.DesiredAt, s.Status = value, now, ChannelPending
	return s
}

// Reported is the state after the device reported value, and whether that is news: a first or
// another value, or the outcome of a command.
//
// A report of what was asked synchronizes from every state. One of something else makes a pending
// or synchronized channel diverge; a failed one stays failed, since an old value that is reported
// again says nothing about why the command was abandoned.
func (s ChannelState) Reported(value any, now time.Time) (next ChannelState, news bool) {
	news = s.ObservedAt.IsZero() || s.Value != value || s.Status == ChannelPending
	s.Value, s.ObservedAt = value, now
	switch {
	case s.Desired == nil || s.fulfilledBy(value):
		s.Status = ChannelSynchronized
	case s.Status != ChannelFailed:
		s.Status = ChannelDiverged
	}
	return s, news
}

// GivenUp is the state after the hub or its radio abandoned the command under way; without one
// nothing changes.
func (s ChannelState) GivenUp() ChannelState {
	if s.Status == ChannelPending {
		s.Status = ChannelFailed
	}
	return s
}

func (s ChannelState) fulfilledBy(value any) bool {
	if wish, ok := s.Desired.(Wish); ok {
		return wish.FulfilledBy(value)
	}
	return s.Desired == value
}
