// Package sendwindow decides when a hub says hello and which of its events it sends, by the flow
// control rules of the hub protocol. It has no goroutine, no clock and no network: the caller
// passes the time and sends.
//
//   - After a connect the hub sends a hello, again every 5 s, and nothing else until the cloud
//     acknowledges it with the number through which it has stored events.
//   - Then it sends events from the next number on, without waiting for acks, but never more than
//     protocol.MaxUnacknowledged events beyond the last ack.
//   - If no ack arrives for 5 s while events are in flight, it sends again from the number after
//     the last acknowledged one.
//   - An ack that repeats the last one while later events are in flight means that the cloud found
//     a gap: the hub sends again from there, at once. Messages that were already in flight cause
//     further acks with the same number, which the window recognizes and ignores.
//   - An ack with a lower number than the last is ignored, except for the first ack of a connection:
//     a restored cloud may have fewer events than before.
//   - If the hub has dropped the number that comes next, it sends a hello, which reports the loss.
package sendwindow
