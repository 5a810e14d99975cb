package installation

import "fmt"

// UsageError is a mistake in what was typed: a flag, an argument or an environment variable. Its
// text names the flag or argument and what is allowed. The command line prints it in one line and
// exits with code 2.
type UsageError struct{ cause error }

// Usagef returns a UsageError with a formatted text. It supports %w as fmt.Errorf does.
func Usagef(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// AsUsage returns err as a UsageError.
func AsUsage(err error) error { return UsageError{err} }

// Error returns the text of the cause.
func (e UsageError) Error() string { return e.cause.Error() }

// Unwrap returns the cause.
func (e UsageError) Unwrap() error { return e.cause }
