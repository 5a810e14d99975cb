// Package tools pins, in a module of its own, the tools that write and check parts of this
// repository: sqlc, staticcheck, deadcode and benchstat. The Makefile runs them with `go tool
// -modfile=test/tools/go.mod`, so that none of them is a dependency of the service.
package tools
