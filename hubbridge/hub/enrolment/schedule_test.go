package enrolment

import (
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
	s.Enrolled(noon)
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
