// Package attention derives what needs attention in a building from the last reported state of its
// hubs and devices: smoke, leaks, jammed locks, commands that were not carried out, devices and
// hubs that cannot be reached, and low batteries. It also decides which mails members get about them:
// one when a condition begins, one when it ends, and digests beyond a number an hour.
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
//
// # Mails
//
// A Record is what is known of one organization: which conditions have been mailed to
// whom, how many mails each member got in the last hour, and which mails are decided and not queued
// yet. The caller observes the organization's hubs with Observe, decides about the changes with
// Apply and Decide, stores the record, and then queues the mails of Outgoing. A mail whose queueing
// is repeated has the same id.
//
// A mail is sent as follows:
//
//   - A condition is mailed once it has stood for a while (StartHold): smoke, leaks and the like at
//     once, a hub that is offline after five minutes.
//   - It has ended once it has not stood for a while (EndHold): 10 s, and three times longer for
//     each further time in an hour, up to 15 minutes. A condition that comes back before that is
//     the same cause: nothing is mailed. So a contact that flaps costs a few mails an hour.
//   - What is unknown has not ended. Only a certain state, or a later report, ends a condition. So
//     a rebuild of the read models, a restore and a hub in doubt end nothing.
//   - Only members who got the first mail get the mail about the end. A condition that a member has
//     marked as seen before the first mail is mailed to nobody.
//   - Holds are measured by the caller's observations in a row. After an interruption (Interrupt)
//     they begin again: what happened meanwhile is not known.
//
// # Groups and limits of mails
//
// Notices about one kind of condition at one site are one mail. It goes at once if there was none
// in the last hour, or if all that stands is new. Otherwise it goes GroupPause after the last one,
// or longer after many.
//
// A member gets at most MailRules.MailsPerHour mails in any hour, of which the last is kept free for a
// digest. Beyond it, notices wait for the digest: a minute, or until the hour has room. While
// notices wait, new ones join them, so that an end is never mailed before its beginning.
//
// Urgent notices, which are begins of alarms of devices, do not count there and never wait for
// others. Beyond MailsPerHour of them the notices of all groups are one mail: at once, and then at
// most one every GroupPause.
//
// In the quiet hours of a member notices about warnings wait until the hours end. Alarms never wait.
//
// # Bounds of a Record
//
// MaxConditions, MaxUrgent, MaxRecipients, MaxListed and MaxOutgoing bound a record. Of conditions
// beyond MaxConditions nothing is mailed until others end.
package attention
