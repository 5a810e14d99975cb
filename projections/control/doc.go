// Package control has an operator's commands for the read models of a running service: show the
// state of the projections, stop and resume them, make one skip an event, rebuild and verify the
// read models, and drop those that are no longer used.
//
// Once Control.Stop has returned, no process writes to the stopped projections until
// Control.Resume. The package serves no reads and runs no projection.
package control
