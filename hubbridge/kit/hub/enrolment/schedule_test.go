package enrolment

import (
	"errors"
	"net/http"
	"testing"
	"time"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func TestSchedule(t *testing.T) {
	t.Parallel()
	s := Schedule{Interval: 6 * time.Hour}
	if !s.Rejected(true, noon) {
		t.Error("a hub that is rejected after a start must enrol at once")
	}
	s.Enrolled(noon, nil)
	if s.Rejected(true, noon.Add(6*time.Hour-time.Second)) ||
		!s.Rejected(true, noon.Add(6*time.Hour)) {
		t.Error("a hub that is rejected after an enrolment must wait for the interval")
	}
	s.Connected()
	if s.Rejected(true, noon.Add(7*time.Hour)) || s.Rejected(true, noon.Add(12*time.Hour)) ||
		!s.Rejected(true, noon.Add(13*time.Hour)) {
		t.Error("a hub that is rejected after a connection must wait for the interval")
	}
	s.Restarted()
	for i, want := range []bool{false, true} {
		if s.Rejected(false, noon) != want {
			t.Errorf("Rejected(false) no. %d = %v, want %v", i+1, !want, want)
		}
	}
	s.Restarted()
	for i, want := range []bool{false, false, true} {
		if s.Unreachable() != want {
			t.Errorf("Unreachable() no. %d after a restart = %v, want %v", i+1, !want, want)
		}
	}
	s.Connected()
	for range 5 {
		if s.Unreachable() {
			t.Error("Unreachable() after a connection = true, want false")
		}
	}
}

// A hub whose authority does not verify the broker any more enrols again. It used to wait for six
// hours, or for a restart.
func TestScheduleOfUntrustedBroker(t *testing.T) {
	t.Parallel()
	s := Schedule{Interval: 6 * time.Hour}
	if !s.Untrusted(noon) {
		t.Error("a hub that does not trust the broker after a start must enrol at once")
	}
	now := noon
	three := func(what string, want bool) {
		t.Helper()
		for i := range 3 {
			now = now.Add(time.Second)
			if got := s.Untrusted(now); got != (want && i == 2) {
				t.Errorf("%s: Untrusted() no. %d = %v", what, i+1, got)
			}
		}
	}
	s.Enrolled(noon, nil)
	s.Connected()
	three("within an hour of that enrolment", false)
	s.Connected()
	now = now.Add(time.Hour)
	s.Enrolled(now, nil) // for another reason, such as a renewal
	s.Connected()
	three("after a connection", true)
	s.Enrolled(now, errors.New("not reached"))
	three("after an enrolment that did not reach the cloud", true)
	s.Enrolled(now, &Error{Status: http.StatusTooManyRequests, RetryAfter: time.Minute})
	three("within Retry-After", false)
	if now = now.Add(time.Minute); !s.Untrusted(now) {
		t.Error("after Retry-After: Untrusted() = false")
	}
	s.Enrolled(now, nil)
	three("within an hour of an enrolment", false)
	if now = now.Add(time.Hour); !s.Untrusted(now) {
		t.Error("an hour after an enrolment: Untrusted() = false")
	}
}
