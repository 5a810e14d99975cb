// Package sendwindow decides when a hub says hello and which of its events it sends, by the hub link's
// rules of flow control. It is pure: the time is an input, and sending is left to the caller.
//
//   - After a connect: hello, again every 5 s, and nothing else until an ack has said where the
//     cloud stands.
//   - Then events from the number after the last acknowledged one, in messages one after the other
//     without waiting, but never more than 2,000 events beyond the last ack.
//   - No ack for 5 s while events are out: again from the number after the last acknowledged one.
//   - An ack that repeats the last one although later events are out means that the cloud met a
//     gap: again from there, at once. The acks that messages sent before that still get repeat the
//     same number, and are known for what they are.
//   - The hub no longer holds the number that comes next, since it had to drop events: hello, so
//     that the cloud learns what is lost.
package sendwindow
