// Package codec reads what hubs say, hello and events messages and answers to requests, as bytes
// from the outside, into values that the bridge can act on. It is pure and keeps nothing.
//
// An events message is read in one pass over its bytes, which at the same time checks that it is
// JSON, finds the number of each event and the extent of each of its members. Nothing is decoded
// into intermediate trees and no number of a hub's data goes through a float: what a hub put into
// `data` is stored as it stands, less the white space between its tokens.
//
// Answers are read as strictly as they are needed: what the hub link asks for must be there with
// its type, a member that may be null may be absent, and members that nobody knows are passed over.
//
// The rules where the hub link leaves a choice:
//
//   - Member names are compared exactly (`Seq` is not `seq`), after escapes. Of members with the
//     same name the last one counts. Members with other names are passed over.
//   - Numbers of events are written as plain integers: 1.0 and 1e3 are not readable.
//   - An element that is not an object has the number that its place gives it, if any other event
//     of the message tells its own.
//   - `device_id` and `clock_trusted` that are absent are null.
//   - An event that is not UTF-8 is malformed. A type is any text that is not empty.
//   - A time in a leap second (23:59:60 UTC) is the last microsecond before it. Digits beyond
//     microseconds are cut off.
package codec
