// Package alarms mails members about conditions that need attention, when they begin and when
// they end.
//
// The Notifier observes the conditions of an organization in the read models when something has
// changed in them, and lets package attention decide. Projectors announce the hubs of which
// something may need attention, or does no longer, in the transaction that writes it
// (schema.AnnounceAttention); an organization with a condition that is held back is observed every
// two seconds. What was mailed to whom is a record for each organization, on the broker, in
// package outbox, through which the mails go.
//
// # Promises
//
//   - One process at a time mails, the holder of a lock in the database. The others stand by. One
//     of them takes over within seconds. A record is written on condition of its revision, so that
//     a process that has lost the lock without noticing queues no mail.
//   - A decision is stored before its mails are queued, and a mail has the same id at every try. A
//     mail is doubled only if the process is killed after the queue took a mail and delivered it,
//     and before that was recorded, a matter of milliseconds. Both have the same Message-ID then.
//   - Losing the database loses nothing: mails wait until the read models are complete, and what
//     was mailed before is not mailed again. Conditions that begin and end meanwhile are not
//     mailed.
//   - The first Notifier of an installation mails nothing about conditions that stand already.
//   - Organizations have turns (shares.Turns): first the ones with a hub that reports an alarm, of
//     these the one that has cost least. A turn reads a bounded number of channels, urgent ones
//     first. The next turn of the organization comes at once for an alarm, otherwise after 2 s, and
//     always after four times what the last one took. So nobody waits for more than one turn of
//     each organization that costs much, and what does not change costs nothing.
//   - All organizations are observed once a minute, when nothing else is to be done, for what is
//     not announced: hubs that were added or removed, and states that were built again.
//   - An organization whose mails cannot be queued, for want of space in the outbox, delays no
//     other.
//
// # Goroutines
//
// Notifier.Run owns all goroutines and waits for them.
package alarms
