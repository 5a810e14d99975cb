// Package controller is the simulated part of a virtual hub, above the hub library: its devices,
// pairing and removal windows, and faults. It has no goroutine and no network.
//
// A Controller is a hub.Handler. Its owner also drives it: Advance moves devices and windows on and
// returns when to call it next. Wake is called, with the lock held, whenever Advance may have
// something to do before that time.
//
// Promises:
//
//   - A change of a device and its events are stored by the engine as one change, for a command
//     together with its answer: all of them survive a restart, or none.
//   - All methods are safe for concurrent use.
package controller
