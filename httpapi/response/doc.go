// Package response has what the API and the portal write alike: errors, and Server-Sent Events
// (section 9.2 of the HTML standard).
//
// FromError turns an error into an Answer: the status of each of the contract's codes, the header
// fields that go with a status, and the error body. An error that is no domain.Error, or has an
// unknown code, becomes internal_error: its text goes to the log and never to the client.
//
// A Stream is one response, owned by one goroutine: the one that the server runs the handler on.
// The owner decides what to send and why the stream ends; the Stream keeps the time: each Send has
// a deadline, so a client that stops reading is disconnected after at most WriteTimeout and delays
// no other client. A stream has a lifetime, after which the client reconnects, and sends a comment
// at regular intervals, so that proxies and clients can tell a quiet stream from a dead one.
//
// Frames of hub events are encoded once, when the event is read from the hub's log (encode.go in
// package feed), and shared by all streams (domain.EncodedEvent). Send writes them as they are.
// AppendEvent, AppendLastEventID and AppendKeepalive encode everything else.
package response
