// Package device holds devices in software: what their channels take and read, the states that a
// channel goes through, and physics that is plausible enough to look at.
//
// It is pure: the time is an input, randomness is seeded, nothing here does I/O or starts a
// goroutine. A Device is not safe for concurrent use; its hub serializes all calls.
//
//   - A device keeps what its channels last reported (value), what was asked of them (desired) and
//     a status: domain.ChannelState, whose three transitions (Commanded, Reported, GivenUp) are the
//     whole state machine. What values a channel takes is the device's own to say.
//   - A command schedules one action for its channel. A later command to the same channel replaces
//     it: the earlier one has no outcome of its own. When the action is due, the device settles and
//     reports; when it cannot be reached by then, the hub gives up and the channel has failed.
//   - Advance carries the device to a given time and returns the observations that are to be told
//     to the cloud, in order: every change of a value, every report of an alarm or scene, and every
//     outcome of a command even when it changes nothing.
//   - Physics has no state beside the channels' values and a few numbers (memory), so that a device
//     survives a restart by its Snapshot alone.
package device
