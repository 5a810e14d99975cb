// Package operators tests the built binary's commands for operators, on large installations and on
// installations that were broken on purpose.
package operators
