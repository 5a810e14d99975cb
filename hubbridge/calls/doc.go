// Package calls asks hubs: devices, commands, pairing. Any replica may; the answer comes back to
// the one that asked, on a token of its own.
//
// A hub that is offline is refused at once, without asking. One that is online gets the request
// once, and has the time-out to answer; whatever comes later is passed over, though the hub may
// have acted. An answer is what the hub link defines (exactly one of result and error, with the
// request's id) or a hub_error; of the errors only those count that the method may have.
package calls
