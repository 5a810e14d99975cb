// Package usage marks errors that are mistakes in what was typed: a flag, an argument or an
// environment variable. The command line prints them in one line and exits with code 2.
package usage

import "fmt"

// Error is a mistake in what was typed. Its text names the flag or argument and what is allowed.
type Error struct{ cause error }

// Errorf returns an Error with a formatted text. It supports %w as fmt.Errorf does.
func Errorf(format string, args ...any) error { return Error{fmt.Errorf(format, args...)} }

// Wrap returns err as an Error.
func Wrap(err error) error { return Error{err} }

// Error returns the text of the cause.
func (e Error) Error() string { return e.cause.Error() }

// Unwrap returns the cause.
func (e Error) Unwrap() error { return e.cause }
