// Package devices asks hubs about their devices and their pairing and removal windows: the methods
// of the hub link with the types of the domain. It asks live, and keeps nothing.
//
// A hub's word is believed only as far as it has the form that the hub link defines. An answer that
// lacks a member, has one of another type, or is about another device or channel than was asked
// about is a hub_error. A member that the contract lets be null may be absent; members that the
// contract does not know are dropped; timestamps are rewritten as the contract has them.
//
// Errors are those of calls.Caller.Call, and rate_limited when too many calls are under way.
package devices
