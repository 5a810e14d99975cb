// Package tools pins, in a module of its own, the tools that generate and check parts of this
// repository: sqlc, staticcheck, deadcode, benchstat, govulncheck, go-licenses and nfpm. The
// Makefile runs them with `go tool -modfile=test/tools/go.mod`, so that they are dependencies
// neither of the service nor of its tests.
package tools
