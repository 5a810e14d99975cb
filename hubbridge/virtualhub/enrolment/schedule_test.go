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
		t.Error("not at once after a start")
	}
	s.Enrolled(noon)
	if s.Rejected(true, noon.Add(6*time.Hour-time.Second)) ||
		!s.Rejected(true, noon.Add(6*time.Hour)) {
		t.Error("not after six hours")
	}
	s.Connected()
	if s.Rejected(true, noon.Add(7*time.Hour)) || s.Rejected(true, noon.Add(12*time.Hour)) ||
		!s.Rejected(true, noon.Add(13*time.Hour)) {
		t.Error("one that was let in and is refused waits six hours")
	}
	s.Restarted()
	for i, want := range []bool{false, true} {
		if s.Rejected(false, noon) != want {
			t.Errorf("a connection that is only closed counts the second time, not time %d", i+1)
		}
	}
	s.Restarted()
	for i, want := range []bool{false, false, true} {
		if s.Unreachable() != want {
			t.Errorf("no broker after a restart counts the third time, not time %d", i+1)
		}
	}
	s.Connected()
	for range 5 {
		if s.Unreachable() {
			t.Error("a broker that goes away is waited for")
		}
	}
}
