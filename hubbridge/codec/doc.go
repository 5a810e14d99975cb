// Package codec decodes the messages of hubs: hellos, events, and responses to requests. It also
// encodes acks, and the cloud's own events. Messages are untrusted bytes. The package is pure and
// keeps nothing.
//
// An events message is decoded in one pass over its bytes, which validates the JSON and finds the
// extents of each event and its members. The pass builds no trees and converts no number of a hub's
// data to a float: data is stored as the hub wrote it, without the white space between its tokens,
// and with U+FFFD for half a surrogate pair and for U+0000.
//
// The result of a response must have the members that the hub protocol requires, each with its
// type. A nullable member may be absent, and unknown members are skipped.
//
// The rules where the hub protocol leaves a choice:
//
//   - Member names are compared exactly, after unescaping: Seq is not seq. Of several members with
//     the same name the last one counts. Members with other names are skipped.
//   - Numbers of events are plain integers: 1.0 and 1e3 are invalid.
//   - An element of events that is not an object has the number of its position, if another event
//     of the message has a number.
//   - An absent device_id or clock_trusted is null.
//   - A byte order mark before a message is skipped.
//   - An event that is not UTF-8 is malformed. A type is any text that is not empty.
//   - A time in a leap second (23:59:60 UTC) is the last microsecond before it. Digits after the
//     microseconds are cut off.
package codec
