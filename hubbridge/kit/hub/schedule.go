package hub

import (
	"errors"
	"net/http"
	"time"
)

// schedule decides when a hub that cannot connect enrols again: at once after a start, otherwise
// once per interval. The zero state belongs to a hub that has just started.
type schedule struct {
	// interval is the least time between enrolments after the first.
	interval time.Duration

	next     time.Time // when the hub may enrol again; zero: not decided since the last connection
	accepted bool      // the broker has accepted the hub since the start
	failures int       // failed connects in a row that may be rejections
	// untrusted counts the handshakes in a row in which the authority did not verify the broker,
	// untrustedAt is when the hub may enrol for that, and forTrust whether it does so now.
	untrusted   int
	untrustedAt time.Time
	forTrust    bool
}

const (
	// untrustedTries is after how many handshakes with a broker that the authority does not verify
	// a hub enrols, and untrustedPart the part of interval that is between two such enrolments: an
	// hour of the six.
	untrustedTries = 3
	untrustedPart  = 6
)

// restarted notes a restart of the hub.
func (s *schedule) restarted() { *s = schedule{interval: s.interval} }

// connected notes that the broker accepted the hub.
func (s *schedule) connected() {
	s.accepted, s.next, s.failures, s.untrusted = true, time.Time{}, 0, 0
}

// enrolled notes an attempt to enrol and its outcome.
func (s *schedule) enrolled(now time.Time, err error) {
	forTrust := s.forTrust
	s.next, s.failures, s.untrusted, s.forTrust = now.Add(s.interval), 0, 0, false
	switch rejected := new(enrolmentError); {
	case err != nil && !errors.As(err, &rejected): // the cloud was not reached
	case err != nil && rejected.Status != http.StatusBadRequest && rejected.Status != http.StatusUnauthorized:
		s.untrustedAt = now.Add(rejected.RetryAfter)
	case forTrust:
		s.untrustedAt = now.Add(s.interval / untrustedPart)
	}
}

// untrustedBroker notes a handshake in which the hub's authority did not verify the broker, and
// reports whether to enrol now: at once after a start, and otherwise after several in a row, since
// what has lost its authority does not find it again. It is no harm to be deceived: enrolment has
// an address and a verification of its own.
func (s *schedule) untrustedBroker(now time.Time) bool {
	s.untrusted++
	s.forTrust = !s.accepted && s.next.IsZero() || s.untrusted >= untrustedTries && !now.Before(s.untrustedAt)
	return s.forTrust
}

// rejectedHub notes that the broker rejected the hub and reports whether to enrol now. certain is
// false for a connection that was merely closed. That may be a delayed takeover or a broker that
// shuts down, so only the second one in a row counts.
func (s *schedule) rejectedHub(certain bool, now time.Time) bool {
	if s.failures++; !certain && s.failures < 2 {
		return false
	}
	if s.accepted && s.next.IsZero() {
		s.next = now.Add(s.interval)
	}
	return !now.Before(s.next)
}

// unreachableBroker notes that no broker answers at the address from the last enrolment and reports
// whether to enrol now. Enrolment returns the present address, but only a hub that has just
// started asks for it: a broker that goes away later is expected back.
func (s *schedule) unreachableBroker() bool {
	s.failures++
	return !s.accepted && s.next.IsZero() && s.failures >= 3
}
