// Package virtualhub is a complete hub in software, for demonstrations and tests. It shares only
// the packages protocol and domain with the cloud's side.
//
// A Hub stands on the hub library (package hub), whose promises about events, acks and command ids
// it keeps, and answers requests about simulated devices. Its methods inject faults while it runs.
//
// Run owns every goroutine and returns when all have ended. All methods are safe for concurrent
// use, before, during and after Run.
//
// Serve offers the hubs of a process to other processes, which Find finds: `hubcloud sim` makes
// them misbehave with an Action.
//
// Package device simulates the devices. Package fleet runs many hubs in one process to generate
// load.
package virtualhub
