package hub

import (
	"errors"
	"net/http"
	"testing"
	"time"
)

func TestSchedule(t *testing.T) {
	t.Parallel()
	s := schedule{interval: 6 * time.Hour}
	if !s.rejectedHub(true, noon) {
		t.Error("a hub that is rejected after a start must enrol at once")
	}
	s.enrolled(noon, nil)
	if s.rejectedHub(true, noon.Add(6*time.Hour-time.Second)) || !s.rejectedHub(true, noon.Add(6*time.Hour)) {
		t.Error("a hub that is rejected after an enrolment must wait for the interval")
	}
	s.connected()
	if s.rejectedHub(true, noon.Add(7*time.Hour)) || s.rejectedHub(true, noon.Add(12*time.Hour)) ||
		!s.rejectedHub(true, noon.Add(13*time.Hour)) {
		t.Error("a hub that is rejected after a connection must wait for the interval")
	}
	s.restarted()
	for i, want := range []bool{false, true} {
		if s.rejectedHub(false, noon) != want {
			t.Errorf("rejectedHub(false) no. %d = %v, want %v", i+1, !want, want)
		}
	}
	s.restarted()
	for i, want := range []bool{false, false, true} {
		if s.unreachableBroker() != want {
			t.Errorf("unreachableBroker() no. %d after a restart = %v, want %v", i+1, !want, want)
		}
	}
	s.connected()
	for range 5 {
		if s.unreachableBroker() {
			t.Error("unreachableBroker() after a connection = true, want false")
		}
	}
}

// A hub whose authority does not verify the broker any more enrols again, without
// waiting for six hours or for a restart.
func TestScheduleOfUntrustedBroker(t *testing.T) {
	t.Parallel()
	s := schedule{interval: 6 * time.Hour}
	if !s.untrustedBroker(noon) {
		t.Error("a hub that does not trust the broker after a start must enrol at once")
	}
	now := noon
	three := func(what string, want bool) {
		t.Helper()
		for i := range 3 {
			now = now.Add(time.Second)
			if got := s.untrustedBroker(now); got != (want && i == 2) {
				t.Errorf("%s: untrustedBroker() no. %d = %v", what, i+1, got)
			}
		}
	}
	s.enrolled(noon, nil)
	s.connected()
	three("within an hour of that enrolment", false)
	s.connected()
	now = now.Add(time.Hour)
	s.enrolled(now, nil) // for another reason, such as a renewal
	s.connected()
	three("after a connection", true)
	s.enrolled(now, errors.New("not reached"))
	three("after an enrolment that did not reach the cloud", true)
	s.enrolled(now, &enrolmentError{Status: http.StatusTooManyRequests, RetryAfter: time.Minute})
	three("within Retry-After", false)
	if now = now.Add(time.Minute); !s.untrustedBroker(now) {
		t.Error("after Retry-After: untrustedBroker() = false")
	}
	s.enrolled(now, nil)
	three("within an hour of an enrolment", false)
	if now = now.Add(time.Hour); !s.untrustedBroker(now) {
		t.Error("an hour after an enrolment: untrustedBroker() = false")
	}
}
