// Package rpc sends requests to hubs and returns their answers: the methods of the hub protocol in
// the types of the domain. It keeps no state about hubs.
//
// [Caller] carries one request. Any replica may send one; the answer returns to the replica that
// asked, on a topic with a token of its own.
//
//   - An offline hub is rejected at once with hub_offline, and nothing is sent.
//   - An online hub gets the request once and has the timeout to answer. A later answer is dropped,
//     although the hub may have acted.
//   - A valid answer has the id of the request and exactly one of result and error. Anything else
//     is a hub_error, and so is an error that the method does not define.
//
// [Devices] has a function for each method. A result must have every member that the hub protocol
// requires, each of its type, and be about the device or channel of the request; otherwise the call
// fails with hub_error. Nullable members may be absent, and unknown members are dropped. Timestamps
// are rewritten in the contract's format.
//
// NewCallPool bounds the calls in flight, so that hubs that do not answer cannot use up a replica.
package rpc
