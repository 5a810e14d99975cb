// Package outbox is the durable queue of mails that leave the service. It stores them in the stream
// MAIL of the account CLOUD, and calls a function for each until the mail is delivered, rejected or
// expired. The content of a mail is opaque.
//
// # Promises
//
//   - A mail is stored when Put returns nil: it survives restarts, a kill -9 and, with the broker's
//     `sync always`, a power cut. Putting the same id twice within two minutes, as after a lost
//     answer, stores one mail.
//   - Each mail is delivered by one replica at a time, and removed after the delivery. It is
//     delivered twice only if the process, or its connection to the broker, fails between a
//     delivery and the removal.
//   - A failure of one mail delays that mail only: 5 s, 10 s, 20 s, … up to 15 minutes, each cut by
//     a random part. ErrUnreachable delays all mails, by a pause that grows from 1 s to a minute.
//   - A mail is dropped undelivered in three cases, each logged with its id: the delivery returned
//     ErrRejected, or the mail has expired, both at level error, or the delivery returned
//     ErrObsolete, at level info.
//   - The queue is bounded: Capacity ordinary mails and AlarmCapacity alarms, of each of which one
//     sender has Config.PerSender, and UrgentCapacity urgent mails, each of at most MaxContent bytes.
//     A full queue rejects new mails (ErrFull, ErrSenderFull) and keeps the old ones. Mails with a
//     sender are counted before one is stored: concurrent calls may exceed the limit by their number,
//     at most by UrgentCapacity.
//   - Of several mails to one recipient, from one sender or urgent, only the newest waits: it
//     replaces the one before, unless that one is being delivered. Mails of different topics do not
//     replace each other.
//   - Urgent mails, alarms and ordinary mails have deliverers of their own: none waits for a mail of
//     another class. Ordinary mails and alarms are delivered from all senders in turn: a sender with
//     many delays the others by one mail at a time, as long as fewer than eight senders fill their
//     part of a process's memory queue.
//   - A mail that a killed process was delivering, or that waited for its next try when the broker
//     stopped, is tried again within ten seconds of the restart.
//   - A mail may contain a secret. The broker's files contain it only while it waits: a mail that
//     is done is overwritten there, not just marked as deleted.
//   - There is no other order among mails.
//
// AlarmRecords keep what was mailed about conditions:
//
//   - A record is written on condition that it is the one that was read: of two processes that
//     decide about the same mails, one fails with ErrConflict, and none of its mails is queued.
//   - A record that was written survives what the broker's other streams survive. It does not depend
//     on Postgres.
//   - The key of the links that end mails is created once and is the same in every replica. It is in
//     no log and in no error.
//
// Run owns every goroutine. When its context ends, deliveries under way get Grace to finish, so
// that an orderly stop repeats none. The next Run repeats deliveries that are cut off then.
package outbox
