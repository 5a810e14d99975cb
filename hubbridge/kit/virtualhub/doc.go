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
// A Fleet is many hubs in one process, in memory and without faults, to generate load.
//
// # Devices
//
// A device is pure: the time is an input, randomness is seeded, and there is no I/O and no
// goroutine. Its hub serializes all calls.
//
//   - A channel has the value last reported, the desired value of the last command, and a status.
//     The transitions of domain.ChannelState (Commanded, Reported, Abandoned) are its state
//     machine. The values that a channel accepts are the device's own rules.
//   - A command schedules one action for its channel. A later command to the same channel replaces
//     the action, and the earlier command has no outcome of its own. When the action is due, the
//     device carries it out and reports. If the device is not reachable by then, the hub gives up
//     and the channel fails.
//   - Advance moves a device on to a given time and returns the observations for the cloud, in
//     order: every change of a value, every report of an alarm or scene, and every outcome of a
//     command, even one that changes no value.
//   - Physics has no state besides the channels' values and a few numbers (memory), so a Snapshot
//     is enough to survive a restart.
package virtualhub
