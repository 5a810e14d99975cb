package domain

import "time"

// Window is a pairing or removal window as callers see it.
type Window struct {
	// Status is `open`.
	Status string
	// ExpiresIn is the remaining time in seconds.
	ExpiresIn int
}

// WindowOpen is the Status of an open window.
const WindowOpen = "open"

// WindowState is the state machine of a pairing or removal window: closed, or open for a time and
// for one device. The zero value is closed.
type WindowState struct {
	// Until is when the window closes by itself; zero if it is closed.
	Until time.Time
}

// OpenWindow returns a window that is open for a duration from now.
func OpenWindow(now time.Time, lasts time.Duration) WindowState {
	return WindowState{Until: now.Add(lasts)}
}

// Open reports whether the window is open at now.
func (w WindowState) Open(now time.Time) bool { return now.Before(w.Until) }

// Use returns the window after a device has used it, which closes it. It returns false if the
// window was closed.
func (w WindowState) Use(now time.Time) (WindowState, bool) { return WindowState{}, w.Open(now) }

// View returns the window as callers see it, with the remaining time rounded up to seconds.
func (w WindowState) View(now time.Time) Window {
	left := max(0, w.Until.Sub(now))
	return Window{Status: WindowOpen, ExpiresIn: int((left + time.Second - 1) / time.Second)}
}
