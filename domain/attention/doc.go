// Package attention derives what needs attention in a building from the last reported state of its
// hubs and devices: smoke, leaks, jammed locks, commands that were not carried out, devices and
// hubs that cannot be reached, and low batteries.
//
// It is pure: the same state has the same conditions, wherever they are derived. The state may be
// from a hub that is offline: its conditions stand until the hub reports otherwise.
//
// # Conditions
//
// A condition has an id that is unique within its hub and stays the same while it stands. Began is
// when the cloud learned of this occurrence, and Since when it began. A condition that ends and
// begins again is another occurrence. Ids are stored with what members have seen and with mails, so
// they must not change. Hubs' clocks may be wrong: they order and identify nothing.
//
// The channels that report alarms in words have one value for all of them. Stand returns which
// alarms stand after a report: all until their end is reported, not only the last.
//
// # What is no condition
//
// Access events, such as an accepted or rejected code, are what locks report all day. A channel
// that differs from its last command because someone operated the device by hand is no condition
// either, except for locks and barriers.
package attention
