// Package domain has the rules of the service: the values of the API (hub ids, serials, scopes,
// roles, keys), the facts of the directory, the decisions that record them, and the errors that
// callers get.
//
// The package is pure. Time, ids and randomness are inputs. Nothing here does I/O, reads a clock,
// starts a goroutine or changes shared state. Each aggregate is a state with two kinds of
// functions: Decide… takes a state and a command and returns the resulting events, or an Error;
// Evolve… folds an event into a state. The same history always leads to the same state, and states
// that were handed out never change.
package domain
