// Package operators tries what whoever runs the service has at hand: the built binary's commands
// for operators, on installations that are broken on purpose, large, or both.
package operators
