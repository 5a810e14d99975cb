// Package consumer tests the Go client and the command line's consumer commands against the built
// binary, with virtual hubs, over restarts, gaps and resets.
package consumer
