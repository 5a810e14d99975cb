// Package alarms mails members about conditions that need attention, when they begin and when
// they end.
//
// The Notifier observes the conditions of all organizations in the read models, every two seconds,
// and lets package alarmmail decide. What was mailed to whom is a record for each organization in
// package alarmstate, on the broker. Mails go through the outbox.
//
// # Promises
//
//   - One process at a time mails, the holder of a lock in the database. The others stand by. One of
//     them takes over within seconds. A record is written on condition of its revision, so that a
//     process that has lost the lock without noticing queues no mail.
//   - A decision is stored before its mails are queued, and a mail has the same id at every try. A
//     mail is doubled only if the process is killed after the queue took a mail and delivered it, and
//     before that was recorded, a matter of milliseconds. Both have the same Message-ID then.
//   - Losing the database loses nothing: mails wait until the read models are complete, and what was
//     mailed before is not mailed again. Conditions that begin and end meanwhile are not mailed.
//   - The first Notifier of an installation mails nothing about conditions that stand already.
//   - A round reads what may need attention, a bounded number of channels of each organization,
//     urgent ones first. The pause between two rounds is 2 s, or as long as a round.
//   - An organization whose mails cannot be queued, for want of space in the outbox, delays no other.
//
// # Goroutines
//
// Notifier.Run owns all goroutines and waits for them.
package alarms
