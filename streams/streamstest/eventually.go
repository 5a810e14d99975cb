package streamstest

import (
	"testing"
	"time"
)

const (
	// eventuallyDeadline only bounds how long a test that fails takes: a machine whose cores are
	// busy with other work is no fault.
	eventuallyDeadline = 5 * time.Minute
	firstPause         = time.Millisecond
	longestPause       = 50 * time.Millisecond
)

// Eventually polls ok, with growing pauses, until ok returns true. It fails the test after
// five minutes, with what as the description of the state that was wanted.
//
// Like t.Fatal, Eventually must be called from the goroutine of the test.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	EventuallyWithin(t, eventuallyDeadline, what, ok)
}

// EventuallyWithin is Eventually with a deadline of its own, for what may take longer than a
// minute.
func EventuallyWithin(t testing.TB, within time.Duration, what string, ok func() bool) {
	t.Helper()
	if !Poll(within, ok) {
		t.Fatalf("after %v still not: %s", within, what)
	}
}

// EventuallyNil is Eventually for a check that can explain itself: it polls check until check
// returns nil, and fails with the last error of check.
func EventuallyNil(t testing.TB, what string, check func() error) {
	t.Helper()
	var err error
	if !Poll(eventuallyDeadline, func() bool { err = check(); return err == nil }) {
		t.Fatalf("after %v still not: %s: %v", eventuallyDeadline, what, err)
	}
}

// Poll calls ok, with growing pauses, until ok returns true, and reports whether it did so in time.
// It is for goroutines that must not end the test, and for loads that try again.
func Poll(within time.Duration, ok func() bool) bool {
	deadline := time.Now().Add(within)
	for pause := firstPause; !ok(); pause = min(2*pause, longestPause) {
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(pause) // the one place where tests poll
	}
	return true
}
