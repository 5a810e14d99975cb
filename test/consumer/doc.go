// Package consumer tries the Go client and the command line's consumer commands against the built
// binary, with virtual hubs: what a consumer of the API meets, over restarts, gaps and resets.
package consumer
