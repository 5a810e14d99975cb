// Package domain is what the service knows without doing anything: the values of the contract (hub
// ids, serials, scopes, roles, keys), the facts of the directory and the rules that decide them,
// and the errors a caller can get.
//
// It is pure. Time, identifiers and randomness are inputs; nothing here does I/O, reads a clock,
// starts a goroutine or holds state that can change under the caller. Every aggregate is a pair of
// functions: Decide…, which takes a state and a command and answers the events that follow or a
// refusal, and Evolve…, which folds an event into a state. The same history always gives the same
// state.
package domain
