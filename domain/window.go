package domain

import "time"

// Window is a pairing or a removal window as callers are told of it.
type Window struct {
	// Status is `open`.
	Status string
	// ExpiresIn is how long it stays open, in seconds.
	ExpiresIn int
}

// WindowOpen is the Status of a window that is open.
const WindowOpen = "open"

// WindowState is the state machine of a pairing or a removal window: closed, or open for a time and
// for one device. The zero value is closed.
type WindowState struct {
	// Until is when it closes by itself; zero: it is closed.
	Until time.Time
}

// OpenWindow is a window that opens now, or is opened anew, for that long.
func OpenWindow(now time.Time, lasts time.Duration) WindowState {
	return WindowState{Until: now.Add(lasts)}
}

// Open says whether the window is open at now.
func (w WindowState) Open(now time.Time) bool { return now.Before(w.Until) }

// Use lets a device through: it is closed afterwards, because a window is for one device. False
// when it was closed already.
func (w WindowState) Use(now time.Time) (WindowState, bool) { return WindowState{}, w.Open(now) }

// Tell gives the window as callers are told of it, the last begun second counted whole.
func (w WindowState) Tell(now time.Time) Window {
	left := max(0, w.Until.Sub(now))
	return Window{Status: WindowOpen, ExpiresIn: int((left + time.Second - 1) / time.Second)}
}
