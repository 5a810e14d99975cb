// Package fleet runs many virtual hubs in one process, to generate load. Each is a virtualhub.Hub
// in memory, without faults and without readings of its own.
//
// Run owns every goroutine and returns when all have ended. All methods are safe for concurrent
// use.
package fleet
