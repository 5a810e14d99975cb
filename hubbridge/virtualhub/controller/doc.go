// Package controller is the logic of a hub: its devices, pairing and removal windows, the memory of
// command ids, the event log, and the decision what to send next. It has no goroutine and no
// network.
//
// The owner of a Controller drives it:
//
//   - Advance moves devices and windows on and returns when to call it next.
//   - Connect and Disconnect begin and end a connection. While there is one, NextMessage returns
//     the next message to publish or when to ask again, HandleAck handles an ack, and HandleRequest
//     runs a request.
//   - Wake is called, with the lock held, whenever Advance or NextMessage may have something to do
//     before the time that they returned.
//
// Promises:
//
//   - A change of a device, the answer to a command and the events of both are stored in the
//     journal as one change: all of them survive a restart, or none.
//   - The lock is never held while anything is sent. All methods are safe for concurrent use.
package controller
