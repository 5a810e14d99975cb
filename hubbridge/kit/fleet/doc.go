// Package fleet runs many virtual hubs in one process, to generate load.
//
// A hub of a fleet has the logic of package controller, in memory and without faults. To keep a hub
// small it has one goroutine, which connects and reads, and an MQTT connection without goroutines
// of its own. A few pacers, shared by all hubs, do the writing: each drives its hubs when they are
// due, or woken by an ack, a request or an emission.
//
// Run owns every goroutine and returns when all have ended. All methods are safe for concurrent
// use.
package fleet
